"""Scan genomes with a fixed encoder and keep statistics of its inner layer."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "4000"))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(64, 48)
        self.mid = nn.Linear(48, 48)
        self.out = nn.Linear(48, 8)

    def forward(self, codons):
        h = self.emb(codons)
        h = torch.tanh(self.mid(h)) * torch.sigmoid(h)
        h = h + torch.exp(-h * h)
        return self.out(h).mean(1)


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    enc = Encoder().eval()
    scan = torch.compile(enc)
    genome = torch.randint(0, 64, (16, 64, 128))
    inner = torch.zeros(())

    def note(mod, args, value):
        inner.add_(value.abs().mean())

    t0 = time.perf_counter()
    with torch.no_grad():
        scan(genome[0])
        enc.mid.register_forward_hook(note)
        for step in range(STEPS):
            out = scan(genome[step % 16])
            if (step + 1) % 50 == 0:
                t1 = time.perf_counter()
                print(f"batch {step + 1} out {out.mean():.4f} inner sum {inner.item():.3f} {(t1 - t0) / 50 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
