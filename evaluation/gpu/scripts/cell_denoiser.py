"""Trains a denoiser of microscope pictures."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.calm = nn.GroupNorm(8, channels)
        self.gain = nn.Parameter(torch.full((channels, 1, 1), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.silu(self.calm(self.first(x)))
        return x + self.gain * F.silu(self.second(y))


class Denoiser(nn.Module):
    def __init__(self, channels: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv2d(8, channels, 3, padding=1)
        self.body = nn.Sequential(*(Residual(channels) for _ in range(depth)))
        self.leave = nn.Conv2d(channels, 8, 3, padding=1)

    def forward(self, noisy: torch.Tensor) -> torch.Tensor:
        return noisy - self.leave(self.body(self.enter(noisy)))


class Plate:
    """Pictures that stay on the device; the noise is made when they are asked for."""

    def __init__(self, batches: int, batch: int) -> None:
        pictures = torch.rand(batches, batch, 8, 64, 64, device=device)
        self.pictures = [p.contiguous(memory_format=torch.channels_last) for p in pictures]

    def pair(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        clean = self.pictures[number % len(self.pictures)]
        return clean + 0.2 * torch.randn_like(clean), clean


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=25_000)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = Denoiser().to(device, memory_format=torch.channels_last)
    denoise = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    plate = Plate(8, args.batch)
    total = torch.zeros((), device=device)
    for step in range(args.steps):
        noisy, clean = plate.pair(step)
        with torch.autocast(device.type, torch.bfloat16):
            guess = denoise(noisy)
        loss = F.mse_loss(guess.float(), clean)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
        if step % 250 == 249:
            print(step + 1, f"{(total / 250).item():.5f}")
            total.zero_()


if __name__ == "__main__":
    main()
