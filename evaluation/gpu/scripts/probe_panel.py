"""A panel of linear-readout probes trained on the activations of a frozen recording.

All probes share one gated expansion and are evaluated in one batched product; each one then has
its own target and its own loss, picked by name from a table.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"

TRAITS = 32
CHANNELS = 128
WIDTH = 64
SAMPLES = 32_768
STEPS = int(os.environ.get("STEPS", "1500"))
REPORT = 250


class Panel(nn.Module):
    def __init__(self, traits, channels, width):
        super().__init__()
        self.expand = nn.Parameter(torch.randn(traits, channels, width) / channels ** 0.5)
        self.gate = nn.Parameter(torch.ones(traits, 1, width))
        self.shift = nn.Parameter(torch.zeros(traits, 1, width))

    def forward(self, activity):
        z = torch.matmul(activity.unsqueeze(0), self.expand)
        z = torch.tanh(z) * torch.sigmoid(self.gate) + self.shift
        return tuple(z[t] for t in range(z.shape[0]))


def huber(pred, target):
    return F.smooth_l1_loss(pred, target, beta=0.5)


def squared(pred, target):
    return F.mse_loss(pred, target)


LOSSES = {"position": squared, "velocity": huber}


def trait_table(n):
    kinds = list(LOSSES)
    return [(f"trait{t:02d}", kinds[t % len(kinds)]) for t in range(n)]


class Recording:
    """Synthetic session: smooth latent activity and one projection of it for each trait."""

    def __init__(self, blocks, generator):
        self.blocks = []
        mixing = torch.randn(TRAITS, CHANNELS, WIDTH, generator=generator, device=device)
        for _ in range(blocks):
            drive = torch.randn(SAMPLES, CHANNELS, generator=generator, device=device)
            activity = torch.tanh(drive.cumsum(0) / 60.0)
            targets = [torch.tanh(activity @ mixing[t] / CHANNELS ** 0.5) for t in range(TRAITS)]
            self.blocks.append((activity, targets))

    def __getitem__(self, n):
        return self.blocks[n % len(self.blocks)]


def total_loss(outputs, targets, table):
    loss = 0.0
    for out, target, (_, kind) in zip(outputs, targets, table):
        loss = loss + LOSSES[kind](out, target)
    return loss / len(table)


def main():
    torch.manual_seed(11)
    torch.set_float32_matmul_precision("high")
    session = Recording(3, torch.Generator(device=device).manual_seed(12))
    table = trait_table(TRAITS)
    panel = Panel(TRAITS, CHANNELS, WIDTH).to(device)
    forward = torch.compile(panel)
    optimiser = torch.optim.Adam(panel.parameters(), lr=2e-3, fused=True)

    def step(n):
        activity, targets = session[n]
        loss = total_loss(forward(activity), targets, table)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.detach()

    for n in range(4):
        step(n)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    for n in range(1, STEPS + 1):
        loss = step(n)
        if n % REPORT == 0:
            print(f"step {n:5d}  loss {loss.item():.4f}  {(time.perf_counter() - t0) / n * 1e3:.2f} ms")
    torch.cuda.synchronize()
    print("gates", panel.gate.detach().mean().item())


if __name__ == "__main__":
    main()
