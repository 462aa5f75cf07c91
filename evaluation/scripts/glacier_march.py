"""Flow-line glacier: march the ice thickness down-glacier for a batch of climates."""
import os
import time

import torch

torch.manual_seed(6)

CLIMATES = 24000
NODES = 32
STEPS = int(os.environ.get("STEPS", "5000"))
LOG = 200


class FlowLine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bed", torch.linspace(1.0, 0.0, NODES) + 0.05 * torch.rand(NODES))
        self.softness = 0.7
        self.sliding = 0.1

    def forward(self, balance, head):
        ice = torch.zeros_like(balance)
        h = head
        for i in range(NODES):
            drive = h * (1.0 + self.bed[i]) + balance[i]
            h = h * 0.92 + 0.08 * drive / (1.0 + self.softness * drive.abs())
            h = h - self.sliding * h * h * 0.1
            ice[i] = h
        return ice


def climates(n=6):
    lapse = torch.linspace(0.6, -0.8, NODES)
    return [lapse[:, None] + 0.2 * torch.randn(NODES, CLIMATES) for _ in range(n)]


def main():
    model = FlowLine().eval()
    march = torch.compile(model)
    weather = climates()
    head = torch.full((CLIMATES,), 0.5)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            ice = march(weather[step % len(weather)], head)
            head = 0.5 * head + 0.5 * ice.mean(0).clamp(min=0.05)
            if step % LOG == 0:
                dt = (time.perf_counter() - t0) / LOG * 1e3
                print(f"year {step} volume {ice.mean().item():.4f} snout {ice[-1].mean().item():.4f} {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
