"""Bottom sketches of sequencing reads: every read is reduced to one minimum per hash
function, and sketches of neighbouring reads are compared to find overlapping fragments."""
import os
import time

import torch
from torch import nn

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

READS = 32 if SMALL else 4096
READ_LEN = 64 if SMALL else 526
K = 15
N_HASH = 16 if SMALL else 96
MERSENNE = 2147483647


class KmerCoder(nn.Module):
    """2-bit packing of the K letters starting at every position."""

    def __init__(self):
        super().__init__()
        self.register_buffer("power", 4 ** torch.arange(K, dtype=torch.int64))

    def forward(self, letters):
        n = letters.shape[1] - K + 1
        code = letters[:, :n].long() * self.power[0]
        for j in range(1, K):
            code = code + letters[:, j:j + n].long() * self.power[j]
        return code


class Sketcher(nn.Module):
    """Universal hashing h(x) = (a x + b) mod p, minimum over the read."""

    def __init__(self, n_hash, seed=5):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.register_buffer("a", torch.randint(1, MERSENNE, (n_hash,), generator=g))
        self.register_buffer("b", torch.randint(0, MERSENNE, (n_hash,), generator=g))
        self.register_buffer("prime", torch.tensor(MERSENNE))

    def forward(self, code):
        mixed = code[:, None, :] * self.a[None, :, None] + self.b[None, :, None]
        return (mixed % self.prime).amin(dim=-1)


def overlap(sketch):
    """Estimated Jaccard index of each read and the next one."""
    return (sketch[1:] == sketch[:-1]).float().mean(dim=-1)


def draw_reads(genome, g):
    start = torch.randint(0, genome.numel() - READ_LEN, (READS,), device=dev, generator=g)
    start = start.sort().values
    return genome[start[:, None] + torch.arange(READ_LEN, device=dev)]


def main():
    g = torch.Generator(device=dev).manual_seed(3)
    genome = torch.randint(0, 4, (READS * 60 + READ_LEN,), device=dev, generator=g).to(torch.uint8)
    coder = KmerCoder().to(dev)
    sketcher = Sketcher(N_HASH).to(dev)
    encode = torch.compile(coder)
    sketch_reads = torch.compile(sketcher)
    batches = [draw_reads(genome, g) for _ in range(8)]
    codes = []

    best = torch.zeros((), device=dev)
    half, t0 = STEPS // 2, None
    with torch.no_grad():
        codes = [encode(r) for r in batches]
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            sk = sketch_reads(codes[k % len(codes)])
            best += overlap(sk).max()
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"mean best overlap {best.item() / STEPS:.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
