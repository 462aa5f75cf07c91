import torch


def sweeps(count, points=640):
    ground = torch.randn(points, 3) * torch.tensor([2.0, 2.0, 0.3])
    for _ in range(count):
        angle = 0.2 * torch.randn(())
        c, s, zero, one = torch.cos(angle), torch.sin(angle), torch.zeros(()), torch.ones(())
        turn = torch.stack([c, -s, zero, s, c, zero, zero, zero, one]).view(3, 3)
        yield ground, ground[torch.randperm(points)] @ turn.T + 0.1 * torch.randn(3)
