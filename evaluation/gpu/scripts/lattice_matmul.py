"""Power iteration on large dense operators in bfloat16."""
import argparse

import torch

DEVICE = torch.device("cuda")
SIZE = 4096


def operators(count):
    ops = []
    for i in range(count):
        g = torch.Generator(device=DEVICE).manual_seed(i)
        a = torch.randn(SIZE, SIZE, device=DEVICE, generator=g) / SIZE ** 0.5
        ops.append(a.to(torch.bfloat16))
    return ops


@torch.compile
def sweep(basis, ops):
    for a in ops:
        basis = a @ basis
        basis = basis * 0.98
    return basis


@torch.compile
def rescale(basis):
    norms = basis.float().norm(dim=0, keepdim=True)
    return (basis.float() / norms).to(basis.dtype), norms


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(2)
    ops = operators(4)
    basis = torch.randn(SIZE, SIZE, device=DEVICE, dtype=torch.bfloat16)
    growth = torch.zeros((), device=DEVICE)
    for step in range(args.steps):
        basis, norms = rescale(sweep(basis, ops))
        growth = 0.9 * growth + 0.1 * norms.mean()
        if step % 500 == 0:
            print(f"sweep {step:5d} growth {growth.item():.5f}")


if __name__ == "__main__":
    main()
