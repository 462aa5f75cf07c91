import argparse

import torch
import torch.nn.functional as F


@torch.compile(dynamic=True)
def diffuse(u, c):
    p = F.pad(u, (1, 1, 1, 1, 1, 1), mode="replicate")
    centre = p[:, :, 1:-1, 1:-1, 1:-1]
    total = (
        p[:, :, 2:, 1:-1, 1:-1] + p[:, :, :-2, 1:-1, 1:-1]
        + p[:, :, 1:-1, 2:, 1:-1] + p[:, :, 1:-1, :-2, 1:-1]
        + p[:, :, 1:-1, 1:-1, 2:] + p[:, :, 1:-1, 1:-1, :-2]
    )
    return centre + c * (total - 6 * centre)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    u = torch.rand(4, 3, 20, 20, 20)
    with torch.no_grad():
        for _ in range(args.steps):
            u = diffuse(u, 0.05)
    print("mean heat", u.mean().item())


if __name__ == "__main__":
    main()
