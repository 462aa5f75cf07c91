import argparse
import logging

import torch
from torch import nn

from quicklayers import GatedWave, RootNorm

log = logging.getLogger("subtitles")


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = RootNorm(width)
        self.before = nn.Linear(width, width)
        self.wave = GatedWave(width)

    def forward(self, x):
        return x + self.wave(self.before(self.norm(x)))


class SubtitleLM(nn.Module):
    def __init__(self, signs=200, width=96, layers=2):
        super().__init__()
        self.signs = nn.Embedding(signs, width)
        self.layers = nn.Sequential(*[Layer(width) for _ in range(layers)])
        self.out = nn.Linear(width, signs, bias=False)

    def forward(self, text):
        x = self.signs(text)
        x = (x.cumsum(1) / torch.arange(1, text.shape[1] + 1)[:, None] + x) / 2
        log.info("subtitles of %d signs", text.shape[1])
        return self.out(self.layers(x))


def main():
    parser = argparse.ArgumentParser(description="a language model of film subtitles")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    args = parser.parse_args()
    logging.basicConfig(filename="/dev/null", level=logging.INFO)
    torch.manual_seed(12)
    net = SubtitleLM()
    model = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(args.steps):
        text = torch.randint(0, 200, (args.batch, args.length + 1)).sort(1).values
        scores = model(text[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            print(f"step {step}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
