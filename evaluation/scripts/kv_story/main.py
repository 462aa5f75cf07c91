"""Write stories token by token, many at once."""
import argparse

import torch

from storyteller import Story, Teller


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stories", type=int, default=1200)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(0)
    teller = Teller(most=args.tokens).eval()
    story = Story(teller)
    written = 0
    for number in range(args.stories):
        written += story.write(args.tokens)
        if number % 50 == 0:
            print(number, "stories,", written, "tokens")


if __name__ == "__main__":
    main()
