"""Closed-loop rollout of a learned valve controller against a learned plant model."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
STEPS = int(os.environ.get("STEPS", "40000"))
PLANTS = 256


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.SiLU()]
    return nn.Sequential(*layers[:-2])


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.ctrl = mlp([12, 96, 96, 96, 4])
        self.plant = mlp([16, 96, 96, 96, 12])

    def forward(self, state, setpoint):
        for _ in range(4):
            act = torch.tanh(self.ctrl(state - setpoint))
            delta = self.plant(torch.cat([state, act], -1))
            state = (state + 0.05 * torch.tanh(delta)).clamp(-3.0, 3.0)
        return state


@torch.inference_mode()
def main():
    torch.manual_seed(23)
    loop = Loop().to(device).eval()
    fast = torch.compile(loop, mode="reduce-overhead")
    setpoint = torch.zeros(PLANTS, 12, device=device)
    state = torch.randn(PLANTS, 12, device=device)
    for _ in range(5):
        state = fast(state, setpoint).clone()
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        state = fast(state, setpoint).clone()
        if step % 2500 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"tick {step:6d}  rms error {state.square().mean().sqrt().item():.4f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
