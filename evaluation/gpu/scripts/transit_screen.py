"""Screens light curves for planets: every batch's most promising stars are written down."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Mixer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.a, self.b = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 5 * width, bias=False)
        self.down = nn.Linear(5 * width // 2, width, bias=False)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, 64)).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        k, v = self.kv(y).chunk(2, dim=-1)
        y = F.scaled_dot_product_attention(self.split(self.q(y)), self.split(k), self.split(v))
        x = x + self.o(y.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.b(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Screener(nn.Module):
    def __init__(self, width: int, depth: int, bins: int, channels: int = 8) -> None:
        super().__init__()
        self.enter = nn.Linear(channels, width)
        self.phase = nn.Parameter(0.02 * torch.randn(bins, width))
        self.body = nn.Sequential(*(Mixer(width) for _ in range(depth)))
        self.norm, self.score = nn.RMSNorm(width), nn.Linear(width, 1)

    def forward(self, curves: torch.Tensor) -> torch.Tensor:
        x = self.body(self.enter(curves) + self.phase)
        return self.score(self.norm(x).mean(1)).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=5000)
    parser.add_argument("--stars", type=int, default=256, help="stars in a batch")
    parser.add_argument("--bins", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(23)
    model = Screener(args.width, args.depth, args.bins).to(device, torch.bfloat16).eval()
    screen = torch.compile(model, mode="reduce-overhead", fullgraph=True)
    sky = torch.randn(16, args.stars, args.bins, 8, device=device, dtype=torch.bfloat16)
    shortlist = []
    with torch.inference_mode():
        for number in range(args.batches):
            scores = screen(sky[number % len(sky)])
            best = scores.topk(3).indices.tolist()
            shortlist.extend((number, star) for star in best)
    print(len(shortlist), "candidates, the last:", shortlist[-1])


if __name__ == "__main__":
    main()
