"""Clean recordings as each caller wishes: the query string says what is done."""
import argparse
import json
import pathlib
import random

import torch

from cleanup.api import Api


def callers(count, seed=11):
    draw = random.Random(seed)
    for _ in range(count):
        yield "&".join(f"{name}={draw.choice(('on', 'off'))}" for name in ("denoise", "dereverb", "level", "warm"))


def main():
    settings = json.loads((pathlib.Path(__file__).parent / "service.json").read_text())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=settings["requests"])
    args = parser.parse_args()
    torch.manual_seed(0)
    clips = torch.randn(settings["clips"], 8, settings["clip"] // 8)
    api = Api(settings)
    for number, query in enumerate(callers(args.requests)):
        api.handle(query, clips[number % len(clips)])
    print("served", api.served, "loudness", round(float(api.loudness), 4))


if __name__ == "__main__":
    main()
