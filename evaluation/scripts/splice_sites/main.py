"""Learns to find splice sites in strands of made-up DNA."""
import json
import sys

import torch
import torch.nn.functional as F
from splice import SpliceNet, Trainer

DEFAULTS = {"steps": 2500, "batch": 16, "length": 800, "rate": 2e-3, "report": 250}


def strands(batch, length, count=24):
    generator = torch.Generator().manual_seed(30)
    stored = []
    for _ in range(count):
        letters = torch.randint(4, (batch, length), generator=generator)
        pair = letters[:, :-1] * 4 + letters[:, 1:]
        sites = F.pad((pair == 11).long() + 2 * (pair == 2).long(), (0, 1))
        stored.append((F.one_hot(letters, 4).float(), sites))
    while True:
        yield from stored


def main():
    config = dict(DEFAULTS, **dict(json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
    if len(sys.argv) > 1:
        config["steps"] = int(sys.argv[1])
    torch.manual_seed(1)
    trainer = Trainer(SpliceNet(), config["rate"])
    feed = strands(config["batch"], config["length"])
    for step in range(1, config["steps"] + 1):
        trainer.step(*next(feed))
        if step % config["report"] == 0:
            print(step, f"{trainer.loss.item():.4f}")


if __name__ == "__main__":
    main()
