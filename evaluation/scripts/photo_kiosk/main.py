"""A kiosk that restyles visitors' portraits; nothing of one visitor may stay for the next."""
import os

import torch

from kiosk.session import visitor
from kiosk.stylist import Stylist


def portraits(count, side=160):
    for _ in range(count):
        yield torch.rand(1, 3, side, side)


@torch.inference_mode()
def main():
    visitors = int(os.environ.get("VISITORS", "250"))
    torch.manual_seed(31)
    stylist = Stylist().eval()
    restyle = torch.compile(stylist)
    for number in range(visitors):
        with visitor(number) as album:
            for portrait in portraits(count=16):
                album.append(restyle(portrait).mean((2, 3)))
        if number % 10 == 0:
            print(f"visitor {number} served", flush=True)


if __name__ == "__main__":
    main()
