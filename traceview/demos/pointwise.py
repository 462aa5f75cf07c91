"""Many pointwise operations in a row: the ideal case for fusion."""

import argparse
import time

import torch


class PointwiseHeavyModel(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(hidden))
        self.shift = torch.nn.Parameter(torch.zeros(hidden))

    def forward(self, x):
        for _ in range(4):
            x = x * self.scale + self.shift
            x = torch.sigmoid(x) * x
            x = torch.tanh(x) + 0.5 * x
            x = x.clamp(-3.0, 3.0)
        return x


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--iters", type=int, default=2000)
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = PointwiseHeavyModel(args.hidden).to(device).eval()
    x = torch.randn(args.rows, args.hidden, device=device)
    compiled = torch.compile(model)

    with torch.no_grad():
        for _ in range(args.warmup):
            compiled(x)
        start = time.perf_counter()
        for _ in range(args.iters):
            y = compiled(x)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    print(f"{args.iters} iterations in {seconds:.2f} s, mean output {y.mean().item():.4f}")


if __name__ == "__main__":
    main()
