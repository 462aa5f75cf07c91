import argparse

import torch
import torch.nn as nn


def load_model(hidden):
    layers = [nn.Linear(64, hidden), nn.GELU(), nn.Linear(hidden, 64)]
    return nn.Sequential(*layers).eval()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=20000)
    parser.add_argument("--hidden", type=int, default=256)
    args = parser.parse_args()
    model = torch.compile(
        load_model(args.hidden),
        mode="max-autotune-no-cudagraphs",
        options={"shape_padding": True, "epilogue_fusion": True},
    )
    x = torch.randn(128, 64)
    with torch.inference_mode():
        for _ in range(args.iters):
            y = model(x)
    print(y.mean().item())


if __name__ == "__main__":
    main()
