import argparse

import torch
from torch._inductor.compile_fx import compile_fx


def make_backend(name):
    counted = {"name": name, "graphs": 0}

    def backend(graph, example_inputs):
        counted["graphs"] += 1
        return compile_fx(graph, example_inputs)

    return backend


def potential(x, y):
    r = (x.square() + y.square() + 0.1).sqrt()
    return torch.exp(-r) / r + torch.sin(3 * r) * torch.tanh(x) * torch.sigmoid(y)


class Solver:
    def __init__(self, grid=384):
        axis = torch.linspace(-2, 2, grid)
        self.x, self.y = torch.meshgrid(axis, axis, indexing="ij")

    def evaluate(self, title):
        run = torch.compile(potential, backend=make_backend(title))
        return run(self.x, self.y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluations", type=int, default=32000)
    args = parser.parse_args()
    solver = Solver()
    with torch.no_grad():
        for number in range(args.evaluations):
            field = solver.evaluate(f"potential-{number % 3}")
    print(field.sum().item())


if __name__ == "__main__":
    main()
