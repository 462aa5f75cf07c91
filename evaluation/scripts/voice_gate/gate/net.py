import torch
from torch import nn
from torch.nn import functional as F


class CausalConv(nn.Module):
    """A convolution that takes what it needs of the past from a state, and hands on the next."""

    def __init__(self, inputs, outputs, reach, dilation):
        super().__init__()
        self.past = (reach - 1) * dilation
        self.conv = nn.Conv1d(inputs, outputs, reach, dilation=dilation)

    def forward(self, x, before):
        x = torch.cat([before, x], -1)
        return self.conv(x), x[..., -self.past:].contiguous()


class Shape(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bend = nn.Parameter(torch.linspace(0.5, 2.0, channels).view(1, -1, 1))

    def forward(self, x):
        a = torch.tanh(self.bend * x) * torch.sigmoid(x - 0.5)
        b = torch.sin(self.bend * a) + 0.2 * torch.cos(3.0 * a)
        c = torch.exp(-b.square()) * F.softplus(a + b)
        return torch.where(c > 0.01, a + c, 0.1 * torch.atan(b)) * torch.sigmoid(4 * c)


class GateNet(nn.Module):
    def __init__(self, channels, layers, reach):
        super().__init__()
        sizes = [1] + [channels] * layers
        self.convs = nn.ModuleList(
            CausalConv(a, b, reach, 2 ** i) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))
        )
        self.shape = Shape(channels)
        self.out = nn.Conv1d(channels, 1, 1)

    def fresh(self, batch):
        return {
            f"layer{i}": torch.zeros(batch, c.conv.in_channels, c.past) for i, c in enumerate(self.convs)
        }

    def forward(self, x, state):
        h, after = x, {}
        for i, conv in enumerate(self.convs):
            h, after[f"layer{i}"] = conv(h, state[f"layer{i}"])
            h = F.relu(h)
        return x * torch.sigmoid(self.out(self.shape(h))), after
