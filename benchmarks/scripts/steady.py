"""A long compiled loop that times itself in chunks, for bench_overhead.py."""

import argparse
import json
import statistics
import time

import torch


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=60)
    parser.add_argument("--seconds-per-chunk", type=float, default=0.5)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(*(Layer(args.width) for _ in range(args.layers))).to(device).eval()
    compiled = torch.compile(model)
    x = torch.randn(args.rows, args.width, device=device)
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)

    def chunk(steps):
        wait()
        start = time.perf_counter()
        for _ in range(steps):
            compiled(x)
        wait()
        return (time.perf_counter() - start) / steps * 1e3

    with torch.no_grad():
        chunk(20)
        steps = max(20, int(args.seconds_per_chunk * 1e3 / chunk(200)))
        times = [chunk(steps) for _ in range(args.chunks)]
    late = times[len(times) // 2 :]
    print(json.dumps({"step_ms": statistics.median(late), "steps_per_chunk": steps}))


if __name__ == "__main__":
    main()
