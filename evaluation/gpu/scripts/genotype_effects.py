"""Fit a small additive + gated model of a quantitative trait on a genotype matrix.

Calls are coded 0 = hom-ref, 1 = het, 2 = hom-alt, 3 = missing, 4 = half call; as usual for common
array data with many rare sites the overwhelming majority of the matrix is hom-ref.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

PEOPLE, SITES, WIDTH = (16, 256, 32) if SMALL else (256, 4096, 32)
CODES = 5


def look_up(calls, table):
    return F.embedding(calls, table)


class TraitModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Parameter(torch.randn(CODES, WIDTH) * 0.3)
        self.site = nn.Parameter(torch.randn(SITES, WIDTH) * 0.1)
        self.gate = nn.Parameter(torch.zeros(SITES, 1))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, calls, quality):
        h = look_up(calls, self.code)
        h = torch.tanh(h * (1.0 + self.site) + self.site)
        h = h * (quality.unsqueeze(-1) * torch.sigmoid(self.gate))
        return self.head(h.mean(1)).squeeze(-1)


def simulate(n):
    probs = torch.tensor([0.94, 0.035, 0.01, 0.01, 0.005], device=device)
    calls = torch.multinomial(probs, n * SITES, replacement=True).view(n, SITES)
    quality = 0.5 + 0.5 * torch.rand(n, SITES, device=device)
    trait = (calls == 1).float()[:, : SITES // 8].mean(1) * 12 + 0.1 * torch.randn(n, device=device)
    return calls, quality, trait


def main():
    torch.manual_seed(2)
    model = TraitModel().to(device)
    fwd = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=device.type == "cuda")
    batches = [simulate(PEOPLE) for _ in range(4)]
    running = torch.zeros((), device=device)
    mark = STEPS // 2
    for step in range(STEPS):
        if step == mark:
            if device.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        calls, quality, trait = batches[step % 4]
        opt.zero_grad(set_to_none=True)
        loss = F.smooth_l1_loss(fwd(calls, quality), trait)
        loss.backward()
        opt.step()
        running = 0.95 * running + 0.05 * loss.detach()
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    print(f"running loss {running.item():.5f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()
