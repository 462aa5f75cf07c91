"""One function computes prediction and loss; that function is what gets compiled."""
import argparse

import torch
from torch.func import functional_call


class Model(torch.nn.Module):
    def __init__(self, inputs=11, hidden=256):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden),
            torch.nn.Softplus(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.Softplus(),
        )
        self.location = torch.nn.Linear(hidden, 1)
        self.scale = torch.nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.layers(x)
        return self.location(h), torch.nn.functional.softplus(self.scale(h)) + 1e-3


def negative_log_likelihood(model, parameters, x, y):
    location, scale = functional_call(model, parameters, (x,))
    z = (y - location) / scale
    return (0.5 * z.square() + scale.log() + torch.log1p(z.abs())).mean()


def main(iterations):
    torch.manual_seed(8)
    model = Model()
    parameters = dict(model.named_parameters())
    objective = torch.compile(negative_log_likelihood)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    x, y = torch.randn(384, 11), torch.randn(384, 1)
    for i in range(iterations):
        value = objective(model, parameters, x, y)
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not i % 1000:
            print(i, value.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=45000)
    main(**vars(parser.parse_args()))
