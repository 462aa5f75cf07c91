"""Batch-render dry stems through a set of measured room responses."""
import os
import time

import torch

RATE = 16000


class Room(torch.nn.Module):
    """Stereo convolution reverb with pre-emphasis, soft clip and wet/dry mix."""

    def __init__(self, response, block):
        super().__init__()
        taps = response.shape[-1]
        self.block = block
        self.size = 1 << (block + taps - 2).bit_length()
        self.register_buffer("spectrum", torch.fft.rfft(response, n=self.size))
        self.register_buffer("tail", torch.zeros(2, taps - 1))
        fade = torch.linspace(0.0, 1.0, block).square()
        self.register_buffer("fade", fade)

    def forward(self, dry, tail, drive, mix):
        emphasised = dry - 0.6 * torch.nn.functional.pad(dry, (1, 0))[..., :-1]
        shaped = torch.tanh(drive * emphasised) / drive
        wet = torch.fft.irfft(torch.fft.rfft(shaped, n=self.size) * self.spectrum, n=self.size)
        wet = wet[..., : self.block + tail.shape[-1]]
        head = wet[..., : self.block] + torch.nn.functional.pad(
            tail, (0, self.block - tail.shape[-1])
        )
        out = (1.0 - mix) * dry + mix * head * (0.5 + 0.5 * self.fade)
        return out, wet[..., self.block :]


def measured_response(taps, gen):
    t = torch.arange(taps) / RATE
    decay = torch.exp(-t / 0.12)
    return torch.randn(2, taps, generator=gen) * decay * 0.05


def stems(n, block, gen):
    t = torch.arange(block) / RATE
    for k in range(n):
        tone = torch.sin(2 * torch.pi * (110.0 + k) * t)
        yield torch.stack([tone, tone.roll(40)]) + 0.01 * torch.randn(2, block, generator=gen)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(5)
    block = 24000
    room = Room(measured_response(8750, gen), block).eval()
    render = torch.compile(room)
    tail = room.tail
    drive = torch.tensor(1.4)
    mix = torch.tensor(0.35)
    level, took = 0.0, []

    with torch.inference_mode():
        for dry in stems(steps, block, gen):
            start = time.perf_counter()
            out, tail = render(dry, tail, drive, mix)
            took.append(time.perf_counter() - start)
            level += out.square().mean().sqrt().item()

    took.sort()
    median = took[len(took) // 2]
    print(f"rms {level / steps:.5f}")
    print(f"{median * 1e3:.2f} ms per block, {block / RATE / median:.0f}x real time")


if __name__ == "__main__":
    main()
