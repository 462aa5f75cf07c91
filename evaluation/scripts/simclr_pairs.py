"""Self-supervised training: two noisy views of each row must agree."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Projector(nn.Module):
    def __init__(self, inputs=64, width=256, out=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, out)
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def info_nce(left, right, temperature=0.2):
    logits = left @ right.T / temperature
    target = torch.arange(left.shape[0], device=left.device)
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.projector = Projector()

    def forward(self, rows, first_noise, second_noise):
        first = rows * (1 + 0.1 * first_noise) + 0.05 * torch.sin(first_noise)
        second = rows * (1 + 0.1 * second_noise) + 0.05 * torch.cos(second_noise)
        return info_nce(self.projector(first), self.projector(second))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=24000)
    options = parser.parse_args()
    torch.manual_seed(6)
    model = SimCLR()
    step_loss = torch.compile(model, dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.max_steps)
    rows = torch.randn(256, 64)
    for step in range(options.max_steps):
        loss = step_loss(rows, torch.randn_like(rows), torch.randn_like(rows))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 1000 == 0:
            print(step, f"{loss.item():.3f}")


if __name__ == "__main__":
    main()
