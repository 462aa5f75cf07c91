"""Train a codec for hummed tunes whose codes are rounded, with a gradient that passes straight through."""
import argparse

import torch

from codec.model import HumCodec


def tunes(count, batch, length, seed=10):
    draw = torch.Generator().manual_seed(seed)
    time = torch.linspace(0, 40, length)
    for _ in range(count):
        pitch = torch.rand(batch, 1, generator=draw) * 4 + 1
        yield torch.sin(pitch * time) * torch.rand(batch, 1, generator=draw)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(0)
    codec = HumCodec(2048)
    objective = torch.compile(codec.objective)
    optimizer = torch.optim.Adam(codec.parameters(), 1e-3)
    album = list(tunes(8, args.batch, 2048))
    for step in range(args.steps):
        loss = objective(album[step % len(album)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 499:
            print(f"{step + 1:6d} {loss.item():.5f}")


if __name__ == "__main__":
    main()
