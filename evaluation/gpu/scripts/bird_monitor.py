"""Field-recorder triage: per-species scores, averaged over perturbed takes."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TAKES = 6
LENGTHS = (300, 900) if SMALL else (6_000, 20_000)
BANDS, WIDTH, SPECIES = 64, 128, 40

torch.backends.cudnn.benchmark = True


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(BANDS, WIDTH, 9, stride=2, padding=4)
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, 7, padding=3)
        self.conv3 = nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
        self.head = nn.Linear(WIDTH, SPECIES)

    def forward(self, frames, gain, hiss):
        x = frames * gain + hiss * torch.sin(37.0 * frames)
        x = F.gelu(self.conv1(x))
        x = x + F.gelu(self.conv2(x))
        x = x + F.gelu(self.conv3(x))
        return torch.sigmoid(self.head(x.mean(dim=-1)))


def recordings(gen, count):
    """Band energies (4 microphones, BANDS, frames); every clip has its own length."""
    frames = torch.randperm(LENGTHS[1] - LENGTHS[0], generator=gen)[:count] + LENGTHS[0]
    for n in frames.tolist():
        yield torch.randn(4, BANDS, n, device=DEVICE)


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(21)
    model = Triage().to(DEVICE).eval()
    score = torch.compile(model, dynamic=True)
    gains = torch.linspace(0.7, 1.3, TAKES, device=DEVICE)
    hiss = torch.linspace(0.0, 0.05, TAKES, device=DEVICE)
    queue = recordings(gen, STEPS // TAKES + 1)
    tally = torch.zeros(SPECIES, device=DEVICE)

    half = STEPS // 2
    start = None
    with torch.no_grad():
        for i in range(STEPS):
            if i == half:
                sync()
                start = time.perf_counter()
            take = i % TAKES
            if take == 0:
                clip = next(queue)
            tally += score(clip, gains[take], hiss[take]).mean(dim=0) / TAKES
    sync()
    elapsed = time.perf_counter() - start
    print(f"top species {int(tally.argmax())}  sum {tally.sum().item():.4f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
