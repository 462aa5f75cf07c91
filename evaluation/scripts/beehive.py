"""Scores of waggle dances: one encoder, used by two heads."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(5)


class Dance(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(width))
        self.shift = torch.nn.Parameter(torch.randn(width) * 0.1)

    def waggle(self, runs):
        swing = torch.tanh(runs * self.gain + self.shift)
        lean = torch.sigmoid(runs - self.shift) * swing
        return lean * lean + swing.abs().add(1.0).log()

    def rate(self, runs):
        marks = self.waggle(runs)
        spread = (marks - marks.mean(-1, keepdim=True)).square()
        return marks / (spread + 0.1).sqrt(), spread.mean(-1)

    def forward(self, runs):
        return self.rate(runs)


class Apiary:
    def __init__(self, width):
        self.dance = torch.compile(Dance(width).eval())

    def judge(self, runs):
        marks, spread = self.dance.rate(runs)
        return marks.amax(-1), spread


apiary = Apiary(512)
films = torch.randn(8, 512, 512)
with torch.inference_mode():
    for step in range(STEPS):
        best, spread = apiary.judge(films[step % 8])
        if step % 400 == 0:
            print(f"{step:6d} best {best.max().item():.4f} spread {spread.mean().item():.4f}")
