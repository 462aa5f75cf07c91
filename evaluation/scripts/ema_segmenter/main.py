import argparse

import torch
import torch.nn.functional as F

from seg.ema import WeightAverage
from seg.net import TinyUNet


def circles(count, size=32):
    axis = torch.linspace(-1, 1, size)
    centre = torch.rand(count, 2, 1, 1) - 0.5
    mask = (axis[None, :, None] - centre[:, 0]) ** 2 + (axis[None, None] - centre[:, 1]) ** 2 < 0.15
    mask = mask.float().unsqueeze(1)
    return mask + 0.3 * torch.randn_like(mask), mask


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = TinyUNet()
    segment = torch.compile(model)
    average = WeightAverage(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = [circles(8) for _ in range(4)]
    for step in range(args.steps):
        image, mask = data[step % 4]
        loss = F.binary_cross_entropy_with_logits(segment(image), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.update()
        if step % 250 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
