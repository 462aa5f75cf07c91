"""Offline mastering chain: a stack of tape-saturation stages run over blocks of stereo audio.

Every stage has its own character (drive, bias, tilt); the stages are compiled one by one so
that a preset can be rearranged without touching the others."""
import os
import time

import torch
import torch.nn as nn

torch.set_num_threads(1)

SAMPLE_RATE = 48_000
BLOCK = 16_384
VOICES = 12


class TapeStage(nn.Module):
    def __init__(self, slot: int, drive: float, bias: float, tilt: float, mix: float):
        super().__init__()
        self.slot = slot
        self.drive = nn.Parameter(torch.tensor(drive), requires_grad=False)
        self.bias = nn.Parameter(torch.tensor(bias), requires_grad=False)
        self.tilt = nn.Parameter(torch.tensor(tilt), requires_grad=False)
        self.mix = nn.Parameter(torch.tensor(mix), requires_grad=False)

    def forward(self, x, meters):
        hot = x * self.drive + self.bias
        sat = hot / (1.0 + hot.abs()) - self.bias / (1.0 + self.bias.abs())
        even = 0.12 * sat * sat * torch.exp(-hot * hot)
        shelf = sat + self.tilt * sat * (1.0 - sat.abs())
        soft = shelf * (27.0 + shelf * shelf) / (27.0 + 9.0 * shelf * shelf)
        wet = (soft + even) / self.drive
        y = x + self.mix * (wet - x)
        meters[self.slot] = y.abs().amax()
        return y


def preset(n_stages: int):
    stages = []
    for i in range(n_stages):
        drive = 1.2 + 0.15 * i
        bias = 0.02 * ((-1) ** i)
        tilt = 0.10 - 0.012 * i
        stages.append(TapeStage(i, drive, bias, tilt, mix=0.35 + 0.02 * i))
    return nn.ModuleList(stages)


class MasteringChain:
    def __init__(self, stages):
        self.stages = stages
        self.meters = torch.zeros(len(stages))
        for stage in self.stages:
            stage.compile()

    @torch.inference_mode()
    def process(self, block):
        y = block
        for stage in self.stages:
            y = stage(y, self.meters)
        return y


def source(gen):
    t = torch.arange(BLOCK) / SAMPLE_RATE
    base = torch.tensor([55.0, 82.4, 110.0, 164.8])
    tone = torch.sin(2 * torch.pi * base[:, None] * t).sum(0) * 0.2
    return tone + 0.05 * torch.randn(VOICES, BLOCK, generator=gen)


def db(x):
    return 20.0 * torch.log10(x.square().mean().sqrt() + 1e-9)


def main():
    gen = torch.Generator().manual_seed(77)
    chain = MasteringChain(preset(24))
    blocks = [source(gen) for _ in range(6)]

    for b in blocks:
        chain.process(b)

    n = int(os.environ.get("STEPS", "1000"))
    started = time.perf_counter()
    level = 0.0
    for i in range(n):
        out = chain.process(blocks[i % len(blocks)])
        if i % 250 == 0:
            level = db(out).item()
            print(f"block {i:5d}: {level:7.2f} dBFS")
    elapsed = time.perf_counter() - started
    peaks = " ".join(f"{p:.2f}" for p in chain.meters[:8].tolist())
    print(f"stage peaks {peaks} ...")
    audio = n * BLOCK / SAMPLE_RATE
    print(f"{audio / elapsed:.1f} x realtime per voice group, {elapsed / n * 1e3:.2f} ms per block")


if __name__ == "__main__":
    main()
