"""Trains a transformer that turns eight radar frames into the hail map of half an hour later."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, c)
        x = x + self.merge(seen)
        return x + self.narrow(F.gelu(self.widen(self.before_mlp(x))))


class Nowcaster(nn.Module):
    def __init__(self, width: int, depth: int, side: int, patch: int = 16, frames: int = 8) -> None:
        super().__init__()
        self.patch = patch
        self.enter = nn.Linear(frames * patch * patch, width)
        self.place = nn.Parameter(torch.zeros((side // patch) ** 2, width))
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(depth))
        self.norm, self.leave = nn.LayerNorm(width), nn.Linear(width, patch * patch)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        p = self.patch
        x = frames.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        x = self.enter(x) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.leave(self.norm(x))


def patches(maps: torch.Tensor, p: int = 16) -> torch.Tensor:
    return maps.unfold(1, p, p).unfold(2, p, p).flatten(3).flatten(1, 2).contiguous()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--side", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(17)
    torch.set_float32_matmul_precision("high")
    model = Nowcaster(args.width, args.depth, args.side).to(device)
    predict = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.05, fused=True)
    warm = max(1, args.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1, (s + 1) / warm) * 0.5 * (1 + math.cos(math.pi * s / args.steps))
    )
    storms = [torch.rand(args.batch, 8, args.side, args.side, device=device) for _ in range(6)]
    hail = [patches(storm.mean(1).square()) for storm in storms]
    running = torch.zeros((), device=device)
    for step in range(args.steps):
        turn = step % len(storms)
        with torch.autocast(device, torch.bfloat16):
            guess = predict(storms[turn])
            loss = F.mse_loss(guess.float(), hail[turn])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        running.lerp_(loss.detach(), 0.02)
        if step % 100 == 99:
            print(f"{step + 1:6d}  {running.item():.5f}")


if __name__ == "__main__":
    main()
