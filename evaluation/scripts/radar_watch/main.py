import argparse

import torch

from radar.chain import Chain
from radar.scene import Scene


def main():
    parser = argparse.ArgumentParser(description="watch a sector with a pulse radar")
    parser.add_argument("--sweeps", type=int, default=25000)
    parser.add_argument("--range-gates", type=int, default=384)
    args = parser.parse_args()
    torch.manual_seed(8)
    chain = Chain(args.range_gates).eval()
    chain.compile()
    scene = Scene(args.range_gates)
    empty = 0
    with torch.inference_mode():
        for number in range(args.sweeps):
            picture = chain(*scene.sweep(number))
            if number % 2000 == 0:
                empty += int(picture.count_nonzero() == 0)
                print(f"sweep {number}: {picture.mean():.4f}, empty so far {empty}")


if __name__ == "__main__":
    main()
