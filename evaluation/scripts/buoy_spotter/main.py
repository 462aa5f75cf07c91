"""Spot buoys in the pictures of a harbour camera."""
import argparse
import logging

import torch

from spotter import Spotter, suppress

log = logging.getLogger("buoys")


def camera(pictures, patches):
    return torch.randn(pictures, patches, 48)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=8000)
    parser.add_argument("--overlap", type=float, default=0.45)
    args = parser.parse_args()
    torch.manual_seed(0)
    spotter = torch.compile(Spotter().eval())
    film = camera(10, spotter.patches)
    found = 0
    with torch.inference_mode():
        for number in range(args.pictures):
            boxes, scores = spotter(film[number % 10])
            found += len(suppress(boxes, scores, args.overlap))
            if number % 500 == 0:
                log.info("picture %d, %d buoys so far", number, found)


if __name__ == "__main__":
    main()
