"""Smooth a stream with a window that grows, and starts anew when it is full."""
import argparse

import torch

LONGEST = 24


@torch.compile
def smooth(window, decay):
    total = torch.zeros_like(window[0])
    weight = 1.0
    for frame in reversed(window):
        total = total + weight * torch.tanh(frame) * torch.exp(-frame.square())
        weight = weight * decay
    return torch.sin(total) + torch.sigmoid(total)


def stream(count):
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(16, 64, 256, generator=generator).unbind()
    for i in range(count):
        yield frames[i % 16]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=90000)
    args = parser.parse_args()
    window = []
    with torch.inference_mode():
        for frame in stream(args.frames):
            if len(window) == LONGEST:
                window.clear()
            window.append(frame)
            y = smooth(window, 0.9)
    print(y.mean().item())


if __name__ == "__main__":
    main()
