import torch
import torch.nn as nn


class Oscillators(nn.Module):
    def __init__(self, notes, tones, samples):
        super().__init__()
        self.pitch = nn.Linear(notes, tones, bias=False)
        self.shape = nn.Parameter(0.1 * torch.randn(tones, samples))

    def forward(self, note):
        phase = self.pitch(note).unsqueeze(-1) * self.shape
        return torch.sin(phase) * torch.exp(-phase.square())


class Synth(nn.Module):
    def __init__(self, notes=32, tones=6, samples=512):
        super().__init__()
        self.tones = Oscillators(notes, tones, samples)
        self.weights = nn.Parameter(torch.rand(tones, 1))
        widths = [samples, 176, 232, 144, 264, 120, 296, samples]
        self.body = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:]))

    def forward(self, note):
        sound = self.tones(note)
        wave = (torch.tanh(sound * self.weights) + torch.cos(sound) * sound).sum(1)
        h = wave
        for layer in self.body:
            h = torch.tanh(layer(h))
        return wave + h
