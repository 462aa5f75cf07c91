"""Fitting the partials of cast bells: from a profile point and strike position to the decay
and pitch of sixteen partials. Small sine network, many samples, trained from scratch."""
import os
import time

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

SAMPLES = 256 if SMALL else 16384
WIDTH = 32 if SMALL else 256
DEPTH = 8
PARTIALS = 16


class Resonance(nn.Module):
    """Periodic unit: z + sin^2(a z) / a, with a gate and a scale normalisation."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.a = nn.Parameter(torch.ones(width))
        self.gain = nn.Parameter(torch.ones(width))
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, h):
        z = self.mix(h)
        z = z + torch.sin(self.a * z).square() / (self.a.abs() + 0.1)
        z = z * torch.sigmoid(z * self.gate)
        scale = torch.rsqrt(z.square().mean(dim=-1, keepdim=True) + 1e-6)
        return h + self.gain * z * scale


class BellNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(6, WIDTH)
        self.body = nn.Sequential(*[Resonance(WIDTH) for _ in range(DEPTH)])
        self.pitch = nn.Linear(WIDTH, PARTIALS)
        self.decay = nn.Linear(WIDTH, PARTIALS)

    def forward(self, where, pitch, decay):
        h = self.body(self.lift(where))
        err_p = nn.functional.smooth_l1_loss(self.pitch(h), pitch)
        err_d = (nn.functional.softplus(self.decay(h)) - decay).square().mean()
        return err_p + 0.3 * err_d


def foundry(n):
    g = torch.Generator(device=dev).manual_seed(1)
    where = torch.rand(n, 6, device=dev, generator=g) * 2 - 1
    k = torch.arange(1, PARTIALS + 1, device=dev)
    pitch = torch.log2(k.float()) + 0.2 * torch.sin(3 * where[:, :1] * k)
    decay = torch.exp(-0.2 * k) * (1 + where[:, 1:2] ** 2)
    return where, pitch, decay


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = BellNet().to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    fit = torch.compile(model)
    data = foundry(SAMPLES)

    half, t0 = STEPS // 2, None
    losses = []
    with FlopCounterMode(display=False) as counter:
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            loss = fit(*data)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            losses.append(loss.detach())
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    per_step = counter.get_total_flops() / STEPS
    print(f"loss {losses[0].item():.4f} -> {losses[-1].item():.4f}")
    print(f"{per_step / 1e9:.2f} GFLOP a step, {per_step / ms / 1e9:.2f} TFLOP/s")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
