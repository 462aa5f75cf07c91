"""A surrogate of a wave tank: paddle signal in, the readings of all gauges out."""

import argparse
import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


@dataclasses.dataclass
class Settings:
    gauges: int = 256
    width: int = 2048
    blocks: int = 4
    batch: int = 2048
    lr: float = 3e-4


class Swell(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.rise = nn.Linear(width, 4 * width)
        self.fall = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.fall(F.gelu(self.rise(self.norm(x))))


class Tank(nn.Module):
    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.paddle = nn.Linear(s.gauges, s.width)
        self.swells = nn.Sequential(*(Swell(s.width) for _ in range(s.blocks)))
        self.gauges = nn.Linear(s.width, s.gauges)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return self.gauges(self.swells(self.paddle(signal)))


class Trainer:
    def __init__(self, s: Settings) -> None:
        self.s = s
        self.model = Tank(s).to(device)
        self.surrogate = torch.compile(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=s.lr, fused=True)
        self.signals = torch.randn(8, s.batch, s.gauges, device=device)
        self.readings = torch.tanh(self.signals.cumsum(-1) / 4)

    def fit(self, steps: int) -> float:
        mean = torch.zeros((), device=device)
        for step in range(steps):
            run = step % len(self.signals)
            guess = self.surrogate(self.signals[run])
            loss = F.smooth_l1_loss(guess, self.readings[run])
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            mean += (loss.detach() - mean) / (step + 1)
            if step % 200 == 199:
                print(step + 1, round(mean.item(), 5), flush=True)
        return mean.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--width", type=int, default=Settings.width)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    args = parser.parse_args()
    torch.manual_seed(5)
    print("mean loss", Trainer(Settings(width=args.width, batch=args.batch)).fit(args.steps))


if __name__ == "__main__":
    main()
