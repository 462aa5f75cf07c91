"""Sap flow in an orchard: leaf demand against root supply."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "15000"))
torch.manual_seed(6)


class Tree(torch.nn.Module):
    def __init__(self, leaves):
        super().__init__()
        self.pull = torch.nn.Parameter(torch.rand(leaves))
        self.root = torch.nn.Parameter(torch.rand(leaves))

    def forward(self, plots):
        demand = torch.sigmoid(plots * self.pull)
        supply = torch.exp(-plots.abs() * self.root)
        sap = demand * supply + 0.1 * (demand - supply).square()
        return sap, (sap - sap.mean(-1, keepdim=True)).abs()


def survey(grow, plot):
    torch.compiler.set_stance("force_eager")
    sap, leaf = grow(plot)
    assert torch.isfinite(sap).all() and torch.isfinite(leaf).all()
    print("survey", tuple(sap.shape), f"{sap.std().item():.4f}")


plots = torch.randn(8, 512, 512)
grow = torch.compile(Tree(512))

with torch.no_grad():
    survey(grow, plots[0])
    for step in range(STEPS):
        sap, leaf = grow(plots[step % 8])
        if step % 500 == 0:
            print(f"{step:6d} sap {sap.mean().item():.5f} leaf {leaf.max().item():.5f}")
