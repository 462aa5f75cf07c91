"""Vector-quantised audio decoder: turns code streams back into frames.

The codebook is kept in an unconstrained form and squashed to a companding
curve before use, as the encoder does it.
"""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(0)

CODES = 256
DIM = 8
FRAMES = 128_000
STEPS = 160
STEPS = int(os.environ.get("STEPS", STEPS))


class Codebook(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(codes, dim))
        self.gamma = nn.Parameter(torch.full((dim,), 1.5))

    def table(self):
        t = torch.erf(self.raw).exp()
        return torch.tanh(t.pow(self.gamma)) - 0.5


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = Codebook(CODES, DIM)
        self.scale = nn.Parameter(torch.ones(DIM))
        self.bias = nn.Parameter(torch.zeros(DIM))

    def forward(self, codes, gain, table):
        frames = table[codes]
        frames = frames * self.scale + self.bias
        return frames * gain[:, None]


def synth_stream(n):
    codes = torch.randint(0, CODES, (n,))
    gain = torch.rand(n) + 0.5
    return codes, gain


def main():
    decoder = Decoder().eval()
    run = torch.compile(decoder)

    streams = [synth_stream(FRAMES) for _ in range(6)]
    loud = 0.0
    times = []
    with torch.no_grad():
        for step in range(STEPS):
            codes, gain = streams[step % len(streams)]
            t0 = time.perf_counter()
            out = run(codes, gain, decoder.book.table())
            times.append(time.perf_counter() - t0)
            loud += out.square().mean().item()
            if step % 50 == 0:
                print(f"[{step:4d}] rms^2 so far {loud / (step + 1):.4f}")

    steady = sorted(times[STEPS // 2:])
    print(f"decoded {STEPS * FRAMES} frames, mean power {loud / STEPS:.4f}")
    print(f"median steady decode {1e3 * steady[len(steady) // 2]:.3f} ms")


if __name__ == "__main__":
    main()
