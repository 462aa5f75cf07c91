"""Fine-tune a protein tagger a few layers at a time."""
import argparse

import torch
import torch.nn.functional as F

from tagger import LayerLottery, Tagger


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--active", type=int, default=2)
    parser.add_argument("--period", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(4)
    tagger = Tagger()
    model = torch.compile(tagger)
    lottery = LayerLottery(tagger, args.active, args.period)
    optimizer = torch.optim.SGD(tagger.parameters(), lr=0.02, foreach=True)
    chains = torch.randint(0, 21, (6, 16, 128))
    tags = torch.randint(0, 8, (6, 16, 128))
    for step in range(args.steps):
        lottery(step)
        scores = model(chains[step % 6])
        loss = F.cross_entropy(scores.flatten(0, 1), tags[step % 6].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
