"""Recover latent codes that reproduce observed spectra through a frozen decoder."""
import os
import time

import torch
import torch.nn as nn
import torch._functorch.config as functorch_config

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
BATCH = 256 if SMALL else 8192
WIDTH = 256 if SMALL else 2048
DEPTH = 4 if SMALL else 12

SETTINGS = {"lr": 0.05, "prior": 1e-3, "memory_budget": 1.0}
functorch_config.activation_memory_budget = SETTINGS["memory_budget"]


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


class Decoder(nn.Module):
    """Pretrained spectrum decoder, kept frozen."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=1.4 / WIDTH**0.5)

    def forward(self, z):
        x = z
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x), approximate="tanh")
        return x


class Inverter:
    def __init__(self, decoder, lr, prior):
        self.decoder = decoder.requires_grad_(False)
        self.lr = lr
        self.prior = prior
        self.loss = torch.compile(self._loss)

    def _loss(self, z, target):
        pred = self.decoder(z)
        misfit = (pred.float() - target.float()).square().mean()
        return misfit + self.prior * z.float().square().mean()

    def step(self, z, target):
        loss = self.loss(z, target)
        (grad,) = torch.autograd.grad(loss, z)
        with torch.no_grad():
            z.sub_(grad.sign(), alpha=self.lr)
        return loss.detach()


def main():
    torch.manual_seed(0)
    decoder = Decoder().to(DEVICE, DTYPE)
    inverter = Inverter(decoder, SETTINGS["lr"], SETTINGS["prior"])
    with torch.no_grad():
        target = decoder(torch.randn(BATCH, WIDTH, device=DEVICE, dtype=DTYPE))
    z = torch.zeros(BATCH, WIDTH, device=DEVICE, dtype=DTYPE).requires_grad_()

    half = STEPS // 2
    start = None
    loss = None
    for i in range(STEPS):
        if i == half:
            sync()
            start = time.perf_counter()
        loss = inverter.step(z, target)
    sync()
    elapsed = time.perf_counter() - start
    print(f"final misfit {loss.item():.6f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
