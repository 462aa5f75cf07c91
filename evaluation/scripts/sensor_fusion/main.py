import argparse

import torch
import torch.nn as nn

from fusionlib import soft_clip


class Fusion(nn.Module):
    def __init__(self, sensors=6, width=160):
        super().__init__()
        self.lift = nn.Linear(sensors, width)
        self.mix = nn.Linear(width, width)
        self.estimate = nn.Linear(width, 3)

    def forward(self, readings):
        h = torch.sin(self.lift(readings)) * torch.exp(-readings.square().sum(-1, keepdim=True))
        h = soft_clip(h, 3.0)
        h = torch.sigmoid(self.mix(h)) * h + torch.cos(h)
        return self.estimate(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--num-steps", type=int, default=45000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Fusion()
    fused = torch.compile(model, fullgraph=True)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    readings, truth = torch.randn(512, 6), torch.randn(512, 3)
    for step in range(args.num_steps):
        error = (fused(readings) - truth).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    print("error", error.item())


if __name__ == "__main__":
    main()
