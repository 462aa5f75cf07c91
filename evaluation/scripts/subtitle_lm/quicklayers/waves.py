import torch

from .compat import opaque


@opaque
def gated_waves(x, frequency, slope, count):
    total = x
    for k in range(1, count + 1):
        bent = torch.sin(frequency * x * k) * torch.exp(-slope.square() * k)
        total = total + bent * torch.sigmoid(slope * x) + torch.tanh(x / k)
    return total / count


class GatedWave(torch.nn.Module):
    def __init__(self, width, count=4):
        super().__init__()
        self.frequency = torch.nn.Parameter(torch.rand(()))
        self.slope = torch.nn.Parameter(torch.rand(()) + 0.5)
        self.count = count

    def forward(self, x):
        return gated_waves(x, self.frequency, self.slope, self.count)
