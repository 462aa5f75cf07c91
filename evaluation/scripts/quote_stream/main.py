import argparse

import torch

from desk.pricing import Pricer
from desk.stream import quotes


def main():
    parser = argparse.ArgumentParser(description="marks an option book against a stream of quotes")
    parser.add_argument("--quotes", type=int, default=20000)
    parser.add_argument("--strikes", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(31)
    pricer = Pricer(args.strikes)
    exposure = 0.0
    with torch.inference_mode():
        for index, quote in enumerate(quotes(args.quotes)):
            value = pricer(quote)
            if index % 1000 == 999:
                exposure = value.sum().item()
    print(f"exposure {exposure:.2f}")


if __name__ == "__main__":
    main()
