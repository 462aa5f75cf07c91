import torch
from torch import nn


class Vocoder(nn.Module):
    """Sums harmonics of a pitch that the phonemes bend."""

    def __init__(self, voices, width=64, harmonics=24, hop=160):
        super().__init__()
        self.phonemes = nn.Embedding(60, width)
        self.timbres = nn.ParameterDict({name: nn.Parameter(torch.randn(width) * 0.3) for name in voices})
        self.pitches = {name: 90.0 + 7.0 * i for i, name in enumerate(voices)}
        self.frame = nn.Linear(width, harmonics + 2)
        self.hop = hop
        self.register_buffer("ranks", torch.arange(1, harmonics + 1).float())

    def forward(self, phonemes, voice):
        x = torch.tanh(self.phonemes(phonemes) + self.timbres[voice])
        bend, breath, shape = self.frame(x).repeat_interleave(self.hop, 1).split([1, 1, len(self.ranks)], -1)
        pitch = self.pitches[voice] * torch.exp2(bend / 6)
        phase = torch.cumsum(pitch / 16000, 1)
        tones = torch.sin(6.2831853 * torch.frac(phase * self.ranks))
        loud = torch.sigmoid(shape) / self.ranks * torch.sigmoid((7600 - pitch * self.ranks) / 200)
        wave = (tones * loud).sum(-1)
        return torch.tanh(wave) + 0.01 * torch.sigmoid(breath.squeeze(-1)) * torch.sin(phase.squeeze(-1) * 997)
