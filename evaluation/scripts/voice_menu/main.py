"""Reads out the menus of telephone systems, each in the voice its owner chose."""
import argparse
import itertools

import torch

from speech.catalogue import VOICES, prompts
from speech.server import SpeechServer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=6000)
    args = parser.parse_args()
    torch.manual_seed(3)
    server = SpeechServer(VOICES)
    loudest = torch.zeros(())
    for prompt in itertools.islice(prompts(), args.prompts):
        wave = server.say(prompt)
        loudest = torch.maximum(loudest, wave.abs().amax())
    print(f"{args.prompts} prompts, peak {loudest.item():.3f}")


if __name__ == "__main__":
    main()
