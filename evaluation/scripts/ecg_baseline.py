"""Beat-wise ECG denoiser trained against baseline-corrected targets."""
import functools
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

LEADS = 8
WINDOW = 400


@functools.lru_cache(maxsize=None)
def whittaker_matrix(n, lam):
    """Penalised least-squares smoother (second differences), as in Eilers 2003."""
    eye = torch.eye(n)
    d2 = eye[2:] - 2.0 * eye[1:-1] + eye[:-2]
    return torch.linalg.inv(eye + lam * (d2.T @ d2))


def remove_baseline(x, lam=1.0e3):
    smoother = whittaker_matrix(x.shape[-1], lam)
    return x - x @ smoother.T


class Denoiser(nn.Module):
    def __init__(self, leads=LEADS, hidden=24):
        super().__init__()
        self.inp = nn.Conv1d(leads, hidden, 7, padding=3)
        self.mid = nn.Conv1d(hidden, hidden, 5, padding=2, groups=4)
        self.out = nn.Conv1d(hidden, leads, 5, padding=2)
        self.gain = nn.Parameter(torch.ones(leads, 1))

    def forward(self, x):
        h = F.silu(self.inp(x))
        h = h + F.silu(self.mid(h))
        return self.gain * self.out(h)


class Criterion(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, noisy, clean):
        pred = self.model(remove_baseline(noisy))
        target = remove_baseline(clean)
        slope = (pred.diff(dim=-1) - target.diff(dim=-1)).abs().mean()
        return F.smooth_l1_loss(pred, target) + 0.3 * slope


def synth(gen, batch):
    t = torch.linspace(0, 4, WINDOW)
    rate = 1.0 + 0.4 * torch.rand(batch, LEADS, 1, generator=gen)
    phase = torch.rand(batch, LEADS, 1, generator=gen)
    beat = torch.exp(-60.0 * (torch.frac(rate * t + phase) - 0.5) ** 2)
    wander = 0.5 * torch.sin(0.9 * t + 6.28 * phase)
    noise = 0.1 * torch.randn(batch, LEADS, WINDOW, generator=gen)
    return beat + wander + noise, beat


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(3)
    pool = [synth(gen, 3) for _ in range(16)]

    criterion = Criterion(Denoiser())
    step_fn = torch.compile(criterion)
    opt = torch.optim.AdamW(criterion.parameters(), lr=2e-3)

    times = []
    for step in range(steps):
        noisy, clean = pool[step % len(pool)]
        t0 = time.perf_counter()
        loss = step_fn(noisy, clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        times.append(time.perf_counter() - t0)

    tail = sorted(times[len(times) // 2:])
    print(f"loss {loss.item():.4f}  median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()
