"""Roll a trained ice-core drilling policy through a simulated glacier and report yields."""
import os

import torch
from torch import nn

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "1500"))
RIGS, SENSORS, HIDDEN = 256, 48, 256


class DrillPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(SENSORS, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU())
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU()) for _ in range(6)
        )
        self.torque = nn.Linear(HIDDEN, 8)
        self.worth = nn.Linear(HIDDEN, 1)

    def forward(self, sensed):
        h = self.encode(sensed)
        for block in self.blocks:
            h = h + block(h)
        return torch.tanh(self.torque(h)), self.worth(h).squeeze(-1)


class Glacier:
    def __init__(self, seed):
        gen = torch.Generator().manual_seed(seed)
        self.flow = (0.15 * torch.randn(SENSORS, SENSORS, generator=gen)).to(DEVICE)
        self.push = (0.3 * torch.randn(8, SENSORS, generator=gen)).to(DEVICE)
        self.reset()

    def reset(self):
        self.ice = torch.linspace(-1, 1, RIGS * SENSORS, device=DEVICE).view(RIGS, SENSORS)
        return self.ice

    def advance(self, torque):
        self.ice = torch.tanh(self.ice @ self.flow + torque @ self.push)
        return self.ice, -(self.ice[:, :4] - 0.5).square().sum(-1)


def probe(policy, glacier):
    sensed = glacier.reset()
    total = torch.zeros(RIGS, device=DEVICE)
    surprise = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        torque, worth = policy(sensed)
        sensed, gain = glacier.advance(torque.detach())
        total = 0.99 * total + gain
        surprise = 0.95 * surprise + 0.05 * (gain - worth.detach()).abs().mean()
        if step % 100 == 99:
            print(f"step {step + 1} yield {total.mean().item():.4f} surprise {surprise.item():.4f}")
    return total


def main():
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    policy = DrillPolicy().to(DEVICE).eval()
    policy = torch.compile(policy, mode="reduce-overhead")
    total = probe(policy, Glacier(3))
    print("final", round(total.mean().item(), 4))


main()
