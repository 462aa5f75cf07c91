"""Learns to fly and score; every update is handed to the pilots in the arenas at once."""
import argparse
import itertools

import torch
from pilot import Hangar, Learner, Pilot


def flights(count, size, maps):
    generator = torch.Generator().manual_seed(12)
    stored = []
    for _ in range(16):
        stored.append((
            torch.randn(size, 48, generator=generator),
            torch.randint(maps, (size,), generator=generator),
            torch.randint(12, (size,), generator=generator),
            -2.5 + 0.1 * torch.randn(size, generator=generator),
            torch.randn(size, generator=generator)))
    return itertools.islice(itertools.cycle(stored), count)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--maps", type=int, default=20000)
    args = parser.parse_args()
    torch.manual_seed(4)
    learner = Learner(Pilot(maps=args.maps), Hangar())
    for flight in flights(args.updates, args.size, args.maps):
        learner.update(flight)
    print("version", learner.hangar.version, f"surprise {float(learner.surprise):.4f}")


if __name__ == "__main__":
    main()
