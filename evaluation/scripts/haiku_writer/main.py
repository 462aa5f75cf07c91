import sys

import torch

from poet import Poet
from paper import Sheet


@torch.no_grad()
def write(poet, sheet, lines):
    word = torch.randint(0, poet.words, (sheet.poems,))
    for _ in range(sum(lines)):
        scores = poet(word, tuple(sheet.lines))
        sheet.keep(poet.thought)
        word = scores.argmax(-1)
    return word


def main():
    poems = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    torch.manual_seed(575)
    poet = Poet()
    poet.compile()
    for number in range(poems):
        last = write(poet, Sheet(poems=96), lines=(5, 7, 5))
        if number % 50 == 0:
            print(f"page {number}: ends with {last[:6].tolist()}", flush=True)


if __name__ == "__main__":
    main()
