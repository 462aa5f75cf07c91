import argparse

import torch
import torch._dynamo
import torch.nn as nn

torch._dynamo.config.suppress_errors = True


@torch.library.custom_op("ranktools::soft_rank", mutates_args=())
def soft_rank(x: torch.Tensor) -> torch.Tensor:
    return torch.argsort(torch.argsort(x, dim=-1), dim=-1).to(x.dtype)


class Ranker(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        h = torch.tanh(x * self.weight) + torch.sin(x) * torch.exp(-x.square())
        h = torch.sigmoid(h) * torch.cos(h) + torch.erf(h)
        h = h + 0.01 * soft_rank(h)
        return torch.log1p(h.abs()) * torch.tanh(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    ranker = torch.compile(Ranker().eval())
    x = torch.randn(192, 128)
    with torch.no_grad():
        for _ in range(args.iters):
            y = ranker(x)
    print(y.sum().item())


if __name__ == "__main__":
    main()
