"""Calibrates a bucket model of soil moisture for many fields at once."""
import argparse

import torch
from torch import nn


class Buckets(nn.Module):
    def __init__(self, fields, layers):
        super().__init__()
        self.capacity = nn.ParameterList(nn.Parameter(torch.rand(fields) + 0.5) for _ in range(layers))
        self.leak = nn.ParameterList(nn.Parameter(torch.rand(fields) * 0.1) for _ in range(layers))

    def forward(self, rain):
        flow = rain
        stored = 0.0
        for cap, leak in zip(self.capacity, self.leak):
            kept = cap * torch.tanh(flow / (cap.abs() + 0.1))
            flow = flow - kept + leak * kept
            stored = stored + kept
        return stored


class Calibration:
    def __init__(self, fields=300, layers=4):
        self.model = Buckets(fields, layers)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimiser, gamma=0.9995)
        self.update = torch.compile(self.optimiser.step)

    def fit(self, rain, observed):
        loss = (self.model(rain) - observed).square().mean()
        loss.backward()
        self.update()
        self.optimiser.zero_grad()
        self.schedule.step()
        return loss.detach()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=6500)
    args = ap.parse_args()
    torch.manual_seed(23)
    calibration = Calibration()
    rain = torch.rand(20, 300) * 3
    observed = rain.clamp(max=1.5) + 0.05 * torch.randn(20, 300)
    for step in range(args.steps):
        loss = calibration.fit(rain, observed)
        if step % 200 == 0:
            print(f"step {step:5d} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
