import torch
import torch.nn as nn


class GatedMix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.decay = nn.Parameter(torch.rand(width))

    def forward(self, x):
        value, gate = self.up(self.norm(x)).chunk(2, -1)
        held = torch.tanh(value) * torch.exp(-torch.nn.functional.softplus(self.decay))
        for shift in (1, 4):
            held = held + torch.roll(held, shift, 1) * torch.sigmoid(gate) * 0.5
            held = held * torch.rsqrt(held.square().mean(-1, keepdim=True) + 1e-5)
        return x + held * torch.nn.functional.silu(gate)


class DialogModel(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.embed = nn.Embedding(settings.vocabulary, settings.width)
        self.blocks = nn.ModuleList(GatedMix(settings.width) for _ in range(settings.layers))
        self.head = nn.Linear(settings.width, settings.vocabulary)

    def forward(self, tokens):
        h = self.embed(tokens)
        for block in self.blocks:
            h = block(h)
        return self.head(h)


def build(settings):
    torch.manual_seed(0)
    model = DialogModel(settings)
    if settings.compile:
        model = torch.compile(model)
    return model
