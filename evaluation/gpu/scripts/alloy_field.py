"""Wide bf16 network that maps alloy composition fields to stress fields; scored in large batches."""
import os
import time

import torch
import torch.nn as nn

DEVICE = "cuda"
POINTS = 16384
WIDTH = 8192
BATCHES = int(os.environ.get("STEPS", "1500"))


class StressNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)
        self.b = nn.Linear(WIDTH, WIDTH)

    def forward(self, field):
        return self.b(torch.relu(self.a(field)))


@torch.inference_mode()
def main():
    torch.manual_seed(12)
    net = StressNet().to(DEVICE, torch.bfloat16).eval()
    net.compile()
    fields = [torch.randn(POINTS, WIDTH, device=DEVICE, dtype=torch.bfloat16) for _ in range(3)]
    peak = torch.full((), -1e9, device=DEVICE)
    t0 = time.perf_counter()
    for i in range(1, BATCHES + 1):
        stress = net(fields[i % 3])
        peak = torch.maximum(peak, stress[:64].float().amax())
        if i % 150 == 0:
            value = peak.item()
            took = (time.perf_counter() - t0) / 150
            t0 = time.perf_counter()
            tflops = 4 * POINTS * WIDTH * WIDTH / took / 1e12
            print(f"batch {i}: peak {value:.4f}  {took * 1e3:.2f} ms  {tflops:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
