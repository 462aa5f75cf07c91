import torch
import torch.nn as nn

from .haar import join, pad_to_power, split


class SpindleScorer(nn.Module):
    def __init__(self, channels, stages, levels=4):
        super().__init__()
        self.levels = levels
        self.threshold = nn.Parameter(torch.rand(levels, channels, 1))
        self.gain = nn.Parameter(1 + 0.1 * torch.randn(channels, 1))
        self.share = nn.Parameter(torch.ones(stages))

    def forward(self, signal, stages):
        length = signal.shape[-1]
        smooth, details = split(pad_to_power(torch.tanh(0.05 * signal) * self.gain), self.levels)
        kept = [torch.sign(d) * torch.relu(d.abs() - t * 0.01) * torch.exp(-d.square()) for d, t in zip(details, self.threshold)]
        clean = join(0.1 * smooth, kept)[..., :length]
        power = torch.log1p(100 * clean.square()) * torch.sigmoid(clean * 30)
        density = power.mean(-1) / (1e-3 + clean.abs().amax(-1))
        counts = torch.bincount(stages)
        return density, counts * self.share[: len(counts)] / len(stages)
