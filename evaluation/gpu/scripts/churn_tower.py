"""Customer-churn tower: one wide bf16 table (first column is the target, the other 1024 are
binned and embedded features from the warehouse), trained in large mini-batches."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
ROWS = 1024 if SMALL else 262144
BATCH = 128 if SMALL else 8192
FEATURES = 1024
WIDTH = 256 if SMALL else 8192
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATURES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        h = self.drop(F.gelu(self.norm(self.inp(x))))
        return self.head(h).squeeze(-1)


def load_table(gen):
    table = torch.randn(ROWS, 1 + FEATURES, generator=gen, device=device)
    score = table[:, 1:9].sum(1) + 0.5 * table[:, 0]
    table[:, 0] = (score > 0).float()
    return table.to(torch.bfloat16)


def main():
    gen = torch.Generator(device=device).manual_seed(11)
    torch.manual_seed(11)
    table = load_table(gen)
    target, features = table[:, 0], table[:, 1:]
    model = Tower().to(device=device, dtype=torch.bfloat16)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    @torch.compile
    def objective(x, y):
        logit = model(x).float()
        return F.binary_cross_entropy_with_logits(logit, y.float())

    half = STEPS // 2
    running = torch.zeros((), device=device)
    for step in range(STEPS):
        if step == half:
            if device.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        lo = (step * BATCH) % ROWS
        loss = objective(features[lo : lo + BATCH], target[lo : lo + BATCH])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running.lerp_(loss.detach(), 0.05)
    if device.type == "cuda":
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"loss {running.item():.4f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
