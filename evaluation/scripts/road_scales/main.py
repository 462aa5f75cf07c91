"""Marks road edges in photos, at random scales as in the test-time augmentation of the paper."""
import argparse
import json
import random

import torch

from roads.pyramid import ScaledRoads

CONFIG = json.loads('{"side": 128, "batch": 4, "scales": [0.6, 1.4], "seed": 5}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=4000)
    args = parser.parse_args()
    torch.manual_seed(CONFIG["seed"])
    dice = random.Random(CONFIG["seed"])
    model = torch.compile(ScaledRoads().eval())
    album = torch.rand(16, CONFIG["batch"], 3, CONFIG["side"], CONFIG["side"])
    found = 0
    with torch.inference_mode():
        for number in range(args.photos):
            scale = round(dice.uniform(*CONFIG["scales"]), 3)
            share, sure = model(album[number % len(album)], scale)
            found += len(sure)
            if number % 500 == 0:
                print(f"{number:6d}  scale {scale:.3f}  with roads {found}")


if __name__ == "__main__":
    main()
