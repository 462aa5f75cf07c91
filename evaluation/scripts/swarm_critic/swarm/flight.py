import torch


def flights(count, drones, width):
    state = torch.randn(drones, width)
    drift = 0.02 * torch.randn(drones, width)
    for number in range(count):
        state = state + drift if number % 200 else torch.randn(drones, width)
        yield state
