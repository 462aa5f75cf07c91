import torch


class Scene:
    def __init__(self, gates, pulses=256, kinds=6):
        self.real = torch.randn(kinds, pulses, gates)
        self.imaginary = torch.randn(kinds, pulses, gates)

    def sweep(self, number):
        return self.real[number % len(self.real)], self.imaginary[number % len(self.real)]
