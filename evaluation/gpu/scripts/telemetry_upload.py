"""Rolling anomaly scores for telemetry windows that live in host memory."""
import os
import os
import time
import torch

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(9)

BIG = DEV == "cuda"
ROWS, COLS = (16384, 4096) if BIG else (512, 256)
WINDOWS = 4
STEPS = 250 if BIG else 10
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


def anomaly(x, mean, scale):
    z = (x - mean) * scale
    soft = torch.sign(z) * torch.log1p(z.abs())
    gate = torch.sigmoid(soft.abs() - 1.5)
    score = (soft.square() * gate).mean(1)
    mean = 0.99 * mean + 0.01 * x.mean(0)
    return score, mean


class Archive:
    """Windows of readings, already parsed to float32 on the host."""

    def __init__(self):
        self.windows = [torch.randn(ROWS, COLS) for _ in range(WINDOWS)]

    def __getitem__(self, k):
        return self.windows[k % WINDOWS]


def main():
    archive = Archive()
    score_fn = torch.compile(anomaly)
    mean = torch.zeros(COLS, device=DEV)
    scale = torch.ones(COLS, device=DEV)
    laps = []
    alarms = torch.zeros((), dtype=torch.long, device=DEV)
    for k in range(STEPS):
        sync()
        t0 = time.perf_counter()
        x = archive[k].to(DEV)
        score, mean = score_fn(x, mean, scale)
        alarms += (score > score.mean() + 3 * score.std()).sum()
        sync()
        laps.append(time.perf_counter() - t0)
        if k % 50 == 0:
            print(f"window {k:4d} alarms so far {alarms.item()}")
    laps = sorted(laps[STEPS // 2:])
    print(f"{alarms.item()} alarms in {STEPS} windows")
    print(f"median window {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
