"""Damage score of parcels from conveyor sensor traces, served in batches."""
import os
import time

import torch
import torch.nn as nn

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 12000))
BATCH, WIDTH, LAYERS = (64, 64, 3) if small else (16384, 512, 8)


class GatedResidual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        h = self.lin(self.norm(x))
        h = h * torch.sigmoid(1.7 * h) + 0.05 * torch.tanh(h) * torch.cos(h)
        return x + self.scale * h * torch.rsqrt(1.0 + h.square())


class DamageScorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(96, WIDTH)
        self.body = nn.ModuleList(GatedResidual(WIDTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, trace):
        x = self.stem(trace)
        for layer in self.body:
            x = layer(x)
        return self.head(x).softmax(-1)


class Service:
    def __init__(self):
        torch.manual_seed(1)
        self.model = torch.compile(DamageScorer().to(device, torch.bfloat16).eval())
        self.served = 0

    @torch.inference_mode()
    def warm_up(self):
        for _ in range(3):
            self.model(torch.randn(BATCH, 96, device=device, dtype=torch.bfloat16))
        # never stall a live request behind a compilation
        torch.compiler.set_stance("eager_on_recompile")

    @torch.inference_mode()
    def handle(self, traces):
        batch = (traces - traces.mean(dim=0)) / (traces.std(dim=0) + 1e-3)
        scores = self.model(batch)
        self.served += len(traces)
        return scores


def main():
    torch.set_float32_matmul_precision("high")
    service = Service()
    service.warm_up()
    inbox = [torch.randn(BATCH, 96, device=device, dtype=torch.bfloat16) for _ in range(8)]
    began = time.perf_counter()
    for step in range(STEPS):
        scores = service.handle(inbox[step % len(inbox)])
        if step % 1000 == 0:
            print(f"request {step:5d} crushed share {scores[:, 0].float().mean().item():.4f} "
                  f"({time.perf_counter() - began:.1f} s)")
    print("served", service.served)


if __name__ == "__main__":
    main()
