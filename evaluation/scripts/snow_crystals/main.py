import argparse
import json
import pathlib

import torch

from crystals.denoiser import Denoiser, Preconditioned
from crystals.sampler import HeunSampler


def main():
    parser = argparse.ArgumentParser(description="draws outlines of snow crystals")
    parser.add_argument("--sheets", type=int, default=120)
    parser.add_argument("--settings", default=pathlib.Path(__file__).with_name("settings.json"))
    args = parser.parse_args()
    settings = json.loads(pathlib.Path(args.settings).read_text())
    torch.manual_seed(13)
    net = Preconditioned(Denoiser(settings["points"], settings["width"], settings["blocks"]))
    net.eval().requires_grad_(False)
    sampler = HeunSampler(torch.compile(net, fullgraph=True), settings)
    for sheet in range(args.sheets):
        crystals = sampler.draw(settings["batch"], settings["points"])
        if sheet % 10 == 0:
            print(f"sheet {sheet}: spread {crystals.std():.3f}", flush=True)


if __name__ == "__main__":
    main()
