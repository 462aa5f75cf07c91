"""Large matrix products and little else: there is nothing to fuse, so compiling gains nothing."""

import argparse

import torch


class MatmulHeavyModel(torch.nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(hidden, hidden, bias=False) for _ in range(layers)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4096 if on_gpu else 512)
    parser.add_argument("--hidden", type=int, default=4096 if on_gpu else 1024)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--iters", type=int, default=1000)
    args = parser.parse_args()

    device = "cuda" if on_gpu else "cpu"
    model = MatmulHeavyModel(args.hidden, args.layers).to(device).eval()
    compiled = torch.compile(model)
    x = torch.randn(args.batch, args.hidden, device=device)
    with torch.no_grad():
        for _ in range(args.iters):
            y = compiled(x)
    print(f"norm of the last output: {y.norm().item():.3f}")


if __name__ == "__main__":
    main()
