"""Predict the next move of a limit order book from snapshots of its levels."""
import argparse
import logging

import torch

from book import Feed, MoveNet, replay

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("limit_book")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12000)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(1)
    model = MoveNet(levels=5)
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    running = torch.zeros(())
    for step, (levels, moves) in enumerate(replay(Feed(seed=4), args.steps, args.batch)):
        loss = torch.nn.functional.cross_entropy(compiled(levels), moves)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.lerp_(loss.detach(), 0.02)
        if step % 250 == 0:
            log.info("step %d loss %.4f", step, running.item())


if __name__ == "__main__":
    main()
