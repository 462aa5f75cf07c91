"""Surrogate of wing pressure coefficients: wide linear operator network, evaluated on batches of designs."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 1500))
torch.set_num_threads(1)


class Operator(nn.Module):
    def __init__(self, designs=1024, points=1536):
        super().__init__()
        self.branch = nn.Linear(designs, 1280)
        self.trunk = nn.Linear(1280, 1280)
        self.head = nn.Linear(1280, points)

    def forward(self, x):
        x = torch.relu(self.branch(x))
        x = torch.relu(self.trunk(x))
        return self.head(x)


def main():
    torch.manual_seed(19)
    model = torch.compile(Operator().eval())
    every = max(1, STEPS // 10)
    lift = torch.zeros(())
    t0, s0 = None, 0
    with torch.inference_mode():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            cp = model(torch.rand(160, 1024))
            lift += cp.mean()
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"{step} batches: mean lift {lift.item() / (step + 1):.5f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
