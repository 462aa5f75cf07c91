"""Teaches a small language model with short texts first and longer ones later."""
import argparse

import torch
from ladder import School, Writer, by_length


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--words", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(0)
    school = School(Writer(args.words))
    for number, text in enumerate(by_length(args.lessons, args.batch, args.words)):
        share = school.lesson(text)
        if number % 500 == 0:
            print(f"{number}: length {text.shape[1] - 1}, {share:.4f} right")


if __name__ == "__main__":
    main()
