"""Classify leaf reflectance spectra; the feature extractor came from an older deployment."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "6000"))


class Extractor(nn.Module):
    def __init__(self, bands: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(bands))
        self.shift = nn.Parameter(torch.zeros(bands))

    def forward(self, r: torch.Tensor) -> torch.Tensor:
        a = torch.log1p(torch.relu(r) * self.scale)
        b = torch.tanh(r - self.shift)
        c = torch.sigmoid(a * b) + torch.exp(-b * b)
        return (a * c + b * torch.sin(c)) / (1.0 + c * c)


class LeafNet(nn.Module):
    def __init__(self, bands=400):
        super().__init__()
        self.features = torch.jit.script(Extractor(bands))
        self.head = nn.Linear(bands, 12)

    def forward(self, r):
        return self.head(self.features(r)).log_softmax(-1)


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    net = torch.compile(LeafNet().eval())
    spectra = torch.rand(8, 512, 400)
    seen = torch.zeros(12)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            out = net(spectra[step % 8])
            seen += out.argmax(1).bincount(minlength=12)
            if (step + 1) % 100 == 0:
                t1 = time.perf_counter()
                print(f"{step + 1} batches, top class {int(seen.argmax())}, {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
