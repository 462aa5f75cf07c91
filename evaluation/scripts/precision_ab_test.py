"""Serve one model in several precisions, request by request."""
import argparse
from contextlib import ExitStack

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        h = torch.tanh(self.a(x)) * torch.sin(x)
        return torch.sigmoid(self.b(h)).float() + torch.exp(-h.float().square())


PLANS = [
    {"grad": False, "cast": None},
    {"grad": False, "cast": torch.bfloat16},
    {"grad": True, "cast": None},
    {"grad": True, "cast": torch.bfloat16},
    {"grad": False, "cast": torch.float16},
    {"grad": True, "cast": torch.float16},
]


def serve(model, x, plan):
    with ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(plan["grad"]))
        if plan["cast"] is not None:
            stack.enter_context(torch.autocast("cpu", dtype=plan["cast"]))
        return model(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=45000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(Net().eval())
    x = torch.randn(256, 192)
    for number in range(args.requests):
        y = serve(model, x, PLANS[number % len(PLANS)])
    print(y.detach().mean().item())


if __name__ == "__main__":
    main()
