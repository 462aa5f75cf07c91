"""Tags glosses of field notes by their language family."""
import sys
import time

import torch

from glossing import GlossTagger


def shelves(count, size, words):
    torch.manual_seed(1)
    return [torch.randint(0, words, (size, 96)) for _ in range(count)]


def main(argv):
    batches = int(argv[1]) if len(argv) > 1 else 4000
    torch.manual_seed(0)
    tagger = GlossTagger(words=3000, width=128, tags=18).eval()
    tag = torch.compile(tagger)
    pages = shelves(6, 48, 3000)
    counts = torch.zeros(18, dtype=torch.long)
    start = time.time()
    with torch.inference_mode():
        for number in range(batches):
            families = tag(pages[number % len(pages)]).argmax(1)
            counts += torch.bincount(families, minlength=18)
            if (number + 1) % 500 == 0:
                print(number + 1, "batches,", counts.tolist())
    print(f"{batches} batches in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv)
