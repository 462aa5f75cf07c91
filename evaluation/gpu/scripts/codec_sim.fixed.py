"""Simulate a fixed-point audio codec network bit-exactly before tape-out."""
import os
import time

import torch
import torch.nn as nn

FRAMES = int(os.environ.get("FRAMES", "5000"))
BLOCKS = 10
CH = 128
BATCH = 32
DEV = "cuda"


lib = torch.library.Library("codec", "DEF")
lib.define("snap(Tensor x, int bits) -> Tensor")


@torch.library.impl(lib, "snap", "CUDA")
def snap_cuda(x, bits):
    top = 2 ** (bits - 1)
    return torch.fake_quantize_per_tensor_affine(x, 2.0 ** (3 - bits), 0, -top, top - 1)


@torch.library.register_fake("codec::snap")
def snap_shape(x, bits):
    return torch.empty_like(x)


snap = torch.ops.codec.snap


class FixedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre = nn.Parameter(torch.ones(CH))
        self.mix = nn.Linear(CH, CH, bias=False)
        self.post = nn.Parameter(torch.zeros(CH))

    def forward(self, x):
        h = snap(x * self.pre, 12)
        h = snap(self.mix(h), 16)
        h = snap(h + self.post, 12)
        h = snap(torch.relu(h), 8)
        h = snap(h * 0.5, 8)
        return snap(x + h, 12)


class CodecNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([FixedBlock() for _ in range(BLOCKS)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@torch.inference_mode()
def main():
    torch.manual_seed(8)
    net = CodecNet().to(DEV).eval()
    simulate = torch.compile(net, mode="reduce-overhead")
    frames = torch.randn(64, BATCH, CH, device=DEV)
    clipped = torch.zeros((), device=DEV)
    t0 = time.time()
    for i in range(FRAMES):
        out = simulate(frames[i % 64])
        clipped += (out.abs() > 3.9).float().mean()
        if i % 500 == 0:
            print(f"frame {i} clipped {clipped.item() / (i + 1):.5f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
