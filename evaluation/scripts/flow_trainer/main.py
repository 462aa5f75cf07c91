import argparse
import math

import torch

from flowkit import CouplingFlow


def loss_of(flow, x):
    z, log_det = flow(x)
    return (0.5 * z.square().sum(-1) + 0.5 * math.log(2 * math.pi) * x.shape[1] - log_det).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = CouplingFlow()
    flow = torch.compile(model)
    optimizer = torch.optim.Adamax(model.parameters(), lr=5e-4)
    x = torch.randn(512, 32) * 0.5 + torch.randn(32)
    for update in range(args.updates):
        optimizer.zero_grad()
        loss = loss_of(flow, x)
        loss.backward()
        optimizer.step()
        if update % 500 == 0:
            print(update, loss.item())


if __name__ == "__main__":
    main()
