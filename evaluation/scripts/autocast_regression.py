"""Mixed-precision training of a wide regression network."""
import argparse
from contextlib import nullcontext

import torch
from torch import nn
import torch.nn.functional as F


class GLU(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, 2 * width)

    def forward(self, x):
        a, b = self.lin(x).chunk(2, dim=-1)
        return a * torch.sigmoid(b)


class Net(nn.Module):
    def __init__(self, inputs=16, width=96):
        super().__init__()
        self.inp = nn.Linear(inputs, width)
        self.glu = nn.ModuleList([GLU(width), GLU(width)])
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x)
        for layer in self.glu:
            h = F.gelu(h + layer(self.norm(h)))
        return self.out(h)


def build_parser():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=8000)
    p.add_argument("--batch", type=int, default=768)
    p.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    return p


def run(args):
    torch.manual_seed(11)
    net = Net()
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
    mixed = torch.autocast("cpu", torch.bfloat16) if args.precision == "bf16" else nullcontext()
    x = torch.randn(args.batch, 16)
    y = x.square().sum(1, keepdim=True)
    for step in range(args.steps):
        with mixed:
            prediction = model(x)
        loss = F.mse_loss(prediction.float(), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 500 == 0:
            print(f"{step:>6} {loss.item():.4f}")


if __name__ == "__main__":
    run(build_parser().parse_args())
