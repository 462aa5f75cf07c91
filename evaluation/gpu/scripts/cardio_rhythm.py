import os
import time

import numpy as np
import torch
import torch._dynamo
from torch import nn

torch._dynamo.config.allow_rnn = True
torch.set_float32_matmul_precision("high")

STEPS = int(os.environ.get("STEPS", "15000"))
BATCH = 128
SAMPLES = 1280
HIDDEN = 384
LAYERS = 2
CLASSES = 9

dev = "cuda" if torch.cuda.is_available() else "cpu"


class RhythmNet(nn.Module):
    """Conv front end, recurrent encoder, attention pooling over 40 frames."""

    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(12, 64, 15, stride=4, padding=7),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Conv1d(64, 128, 9, stride=4, padding=4),
            nn.BatchNorm1d(128),
            nn.ReLU(),
            nn.Conv1d(128, 192, 5, stride=2, padding=2),
            nn.BatchNorm1d(192),
            nn.ReLU(),
        )
        self.encoder = nn.LSTM(192, HIDDEN, num_layers=LAYERS, batch_first=True)
        self.score = nn.Linear(HIDDEN, 1)
        self.head = nn.Sequential(nn.Linear(HIDDEN, 128), nn.GELU(), nn.Linear(128, CLASSES))

    def forward(self, ecg):
        z = self.front(ecg).transpose(1, 2).contiguous()
        h, _ = self.encoder(z)
        w = torch.softmax(self.score(h), dim=1)
        return self.head((h * w).sum(1))


def synth_batch(rng):
    t = np.linspace(0, 5, SAMPLES, dtype=np.float32)
    rate = rng.uniform(0.8, 2.2, size=(BATCH, 1, 1)).astype(np.float32)
    lead = rng.normal(size=(BATCH, 12, 1)).astype(np.float32)
    beat = np.exp(-((t * rate) % 1.0 - 0.3) ** 2 / 0.002) * lead
    return beat + 0.05 * rng.normal(size=(BATCH, 12, SAMPLES)).astype(np.float32)


def main():
    rng = np.random.default_rng(11)
    torch.manual_seed(11)
    net = RhythmNet().to(dev).eval()
    pool = [torch.from_numpy(synth_batch(rng)).to(dev) for _ in range(8)]
    infer = torch.compile(net)

    votes = torch.zeros(CLASSES, device=dev)
    with torch.no_grad():
        for i in range(3):
            infer(pool[i])
        if dev == "cuda":
            torch.cuda.synchronize()

        begin = time.perf_counter()
        for step in range(STEPS):
            logits = infer(pool[step % len(pool)])
            votes += torch.softmax(logits, -1).mean(0)
            if (step + 1) % 2000 == 0:
                share = (votes / votes.sum()).tolist()
                print(step + 1, " ".join(f"{s:.3f}" for s in share))
        if dev == "cuda":
            torch.cuda.synchronize()
        span = time.perf_counter() - begin
    print(f"{BATCH * STEPS / span:.0f} strips per second, {span / STEPS * 1000:.3f} ms per batch")


if __name__ == "__main__":
    main()
