"""Widens interleaved stereo blocks as they come from a sound card: saturation and a mid/side balance."""
import os
import time
import torch

torch.manual_seed(18)

BLOCKS, FRAMES = 16, 8192


@torch.compile
def widen(left, right, width, warmth):
    mid = 0.5 * (left + right)
    side = 0.5 * (left - right)
    mid = torch.tanh(warmth * mid) + 0.1 * torch.sin(3.0 * mid) * torch.exp(-mid.abs())
    side = width * side / (1.0 + torch.exp(-4.0 * side.abs()))
    side = side + 0.05 * torch.cos(2.0 * side) * torch.tanh(side)
    energy = torch.log1p(mid.square() + side.square()).mean()
    return mid + side, mid - side, energy


def capture(generator):
    hum = torch.rand(BLOCKS, 2 * FRAMES, generator=generator)
    return hum.mul_(2.0).sub_(1.0)


def main():
    g = torch.Generator().manual_seed(1)
    warmth = torch.tensor(1.4)
    loud = 0.0
    start = time.time()
    for n in range(int(os.environ.get("STEPS", "2000"))):
        pcm = capture(g)
        width = 1.0 + 0.5 * torch.sin(torch.tensor(0.01 * n))
        left, right, energy = widen(pcm[:, 0::2].contiguous(), pcm[:, 1::2].contiguous(), width, warmth)
        loud = 0.99 * loud + 0.01 * energy.item()
        if n % 200 == 199:
            print(f"block {n + 1}  loudness {loud:.4f}  peak {left.amax().item():.3f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
