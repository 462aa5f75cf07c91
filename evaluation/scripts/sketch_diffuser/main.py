"""Draw sketches with a diffusion model as the settings say."""
import argparse
import json
import pathlib

import torch

from sketch import Diffuser, speed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sketches", type=int, default=450)
    parser.add_argument("--settings", default=pathlib.Path(__file__).with_name("settings.json"))
    args = parser.parse_args()
    settings = json.loads(pathlib.Path(args.settings).read_text())
    torch.manual_seed(2)
    diffuser = Diffuser(settings["width"], settings["blocks"], settings["steps"]).eval()
    speed.prepare(diffuser, settings["speed"])
    ink = 0.0
    for number in range(args.sketches):
        ink += diffuser.draw(4).mean().item()
        if number % 25 == 0:
            print(f"sketch {number}: ink {ink / (number + 1):.4f}")


if __name__ == "__main__":
    main()
