"""Project a large star catalogue on template vectors, repeatedly; one dense product does it all."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "400"))


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(1024, 1024)
        self.b = nn.Linear(1024, 1024)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    model = torch.compile(Projector().eval())
    x = torch.randn(4, 512, 1024)
    total = 0.0
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            y = model(x[step % 4])
            if (step + 1) % 20 == 0:
                total += y.mean().item()
                t1 = time.perf_counter()
                print(f"block {step + 1} sum {total:.4f} {(t1 - t0) / 20 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
