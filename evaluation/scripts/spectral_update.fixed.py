"""An optimizer that preconditions each matrix by its own row and column norms."""
import argparse

import torch
import torch._dynamo
import torch.nn as nn
import torch.nn.functional as F

torch._dynamo.config.force_parameter_static_shapes = False


@torch.compile
def precondition(parameter, gradient, momentum, rate):
    momentum.mul_(0.9).add_(gradient)
    rows = momentum.square().mean(-1, keepdim=True).sqrt() + 1e-6
    columns = momentum.square().mean(0, keepdim=True).sqrt() + 1e-6
    step = torch.tanh(momentum / (rows * columns).sqrt())
    parameter.sub_(rate * step)


class RowColumn(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                precondition(p, p.grad, state["momentum"], group["lr"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24000)
    args = parser.parse_args()
    torch.manual_seed(0)
    sizes = [20, 190, 150, 170, 130, 210, 110, 230, 90, 250, 70, 30]
    net = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in zip(sizes, sizes[1:])))
    optimizer = RowColumn(net.parameters())
    x, y = torch.randn(32, 20), torch.randn(32, 30)
    for step in range(args.steps):
        loss = F.mse_loss(net(x), y)
        net.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
