"""One shared trunk and a head for every clinic; records are padded per visit count."""
import argparse

import torch
from torch import nn

CLINICS = ["north", "south", "harbour", "hill", "market", "river", "abbey", "quay",
           "mill", "forge", "tower", "garden", "bridge", "chapel"]
LONGEST = 256


class Trunk(nn.Module):
    def __init__(self, inp=24, width=64):
        super().__init__()
        self.lift = nn.Linear(inp, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, visits, mask):
        h = self.lift(visits)
        for k in range(2):
            u = self.scale * h
            h = h * (0.5 + 0.5 * u / (1.0 + u.abs())) + h.clamp(-1.0, 1.0) * 0.1 * (k + 1)
        h = h * mask[..., None]
        return h.sum(1) / mask.sum(1, keepdim=True).clamp_min(1.0)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.heads = nn.ModuleDict({c: nn.Linear(64, 3) for c in CLINICS})

    def forward(self, visits, mask, clinic):
        return self.heads[clinic](self.trunk(visits, mask))


def collate(patients):
    visits = torch.zeros(len(patients), LONGEST, 24)
    mask = torch.zeros(len(patients), LONGEST)
    for row, p in enumerate(patients):
        visits[row, :len(p)] = p
        mask[row, :len(p)] = 1.0
    return visits, mask


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    args = ap.parse_args()
    torch.manual_seed(18)
    lengths = torch.randint(4, 33, (400,)).tolist()
    lengths[7] = LONGEST
    patients = [torch.randn(n, 24) for n in lengths]
    model = torch.compile(Network())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(args.steps):
        clinic = CLINICS[step % len(CLINICS)]
        rows = torch.randint(0, 400, (24,)).tolist()
        visits, mask = collate([patients[r] for r in rows])
        loss = nn.functional.cross_entropy(model(visits, mask, clinic), torch.tensor([r % 3 for r in rows]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 50 == 0:
            print(f"step {step:5d} {clinic:8s} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
