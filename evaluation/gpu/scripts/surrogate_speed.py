"""Evaluate a wide surrogate of a combustion solver and report what torch.compile brings."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
BATCH = 8192
WIDTH = 8192


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, state):
        for layer in self.layers:
            state = torch.relu(layer(state))
        return state


class Meter:
    def __init__(self, name):
        self.name, self.spent, self.calls = name, 0.0, 0

    def add(self, seconds):
        self.spent += seconds
        self.calls += 1

    @property
    def ms(self):
        return self.spent / max(self.calls, 1) * 1e3


def plain_pass(net, states, meter, n):
    drift = 0.0
    for i in range(n):
        begin = time.perf_counter()
        out = net(states[i % len(states)])
        drift += out[0, 0].item()
        meter.add(time.perf_counter() - begin)
    return drift


def fast_pass(net, states, meter, n):
    drift = torch.zeros((), device=device)
    for i in range(n):
        begin = time.perf_counter()
        out = net(states[i % len(states)])
        meter.add(time.perf_counter() - begin)
        drift += out[0, 0].float()
        if (i + 1) % 20 == 0:
            last = drift.item()
        if (i + 1) % 300 == 0:
            print(f"  {i + 1} calls, drift {last:.4f}, {meter.ms:.3f} ms per call")
    return drift.item()


@torch.inference_mode()
def main():
    torch.manual_seed(1)
    net = Surrogate().to(device, torch.bfloat16).eval()
    fast = torch.compile(net)
    states = [torch.randn(BATCH, WIDTH, device=device, dtype=torch.bfloat16) for _ in range(4)]
    for s in states:
        net(s), fast(s)
    torch.cuda.synchronize()

    plain, quick = Meter("plain"), Meter("compiled")
    plain_pass(net, states, plain, 60)
    fast_pass(fast, states, quick, int(os.environ.get("STEPS", "1800")))
    flops = 3 * 2 * BATCH * WIDTH * WIDTH
    for m in (plain, quick):
        print(f"{m.name:9s} {m.ms:8.3f} ms per call  {flops / m.ms / 1e9:9.1f} TFLOP/s")
    print(f"torch.compile is {plain.ms / quick.ms:.1f}x faster")


if __name__ == "__main__":
    main()
