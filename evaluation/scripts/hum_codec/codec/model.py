import torch
import torch.nn as nn
import torch.nn.functional as F

from .rounding import Rounded


class HumCodec(nn.Module):
    def __init__(self, length, levels=15):
        super().__init__()
        self.levels = levels
        self.press, self.lift = nn.Parameter(torch.ones(length)), nn.Parameter(torch.zeros(length))
        self.release, self.drop = nn.Parameter(torch.ones(length)), nn.Parameter(torch.zeros(length))

    def forward(self, sound):
        h = sound * self.press + self.lift
        h = h / (1 + h.abs()) + 0.2 * F.hardtanh(h)
        codes = Rounded.apply(h, self.levels)
        back = codes * self.release + self.drop
        return back * (1 + 0.3 * back.abs()) - 0.1 * back.square(), codes

    def objective(self, sound):
        again, codes = self(sound)
        change = (codes[:, 1:] - codes[:, :-1]).abs().mean()
        return (again - sound).square().mean() + (again - sound).abs().mean() + 1e-3 * change
