"""Travel-time estimates along a river: reaches attend to near reaches and to the outlets."""
import os

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "5000"))
REACHES, DIM, HEADS, WINDOW, OUTLETS = 8192, 512, 8, 256, 64


def near_or_outlet(b, h, q_idx, kv_idx):
    near = (q_idx - kv_idx <= WINDOW) & (kv_idx - q_idx <= WINDOW)
    return near | (kv_idx < OUTLETS)


class ReachBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x, block_mask):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = flex_attention(q, k, v, block_mask=block_mask)
        return x + self.out(mixed.transpose(1, 2).reshape(b, n, DIM))


class River(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.embed = nn.Linear(12, DIM)
        self.blocks = nn.ModuleList(ReachBlock() for _ in range(depth))
        self.head = nn.Linear(DIM, 1)

    def forward(self, gauges, block_mask):
        x = self.embed(gauges)
        for block in self.blocks:
            x = block(x, block_mask)
        return self.head(x).squeeze(-1)


@torch.no_grad()
def main():
    torch.manual_seed(31)
    river = River().to(DEVICE, torch.bfloat16).eval()
    estimate = torch.compile(river)
    gauges = torch.randn(1, REACHES, 12, device=DEVICE, dtype=torch.bfloat16)
    drift = torch.randn_like(gauges) * 0.02
    block_mask = create_block_mask(near_or_outlet, None, None, REACHES, REACHES, device=DEVICE)
    for step in range(STEPS):
        hours = estimate(gauges, block_mask)
        gauges = (gauges + drift).clamp(-3, 3)
        if step % 100 == 99:
            print(f"step {step + 1} mean travel time {hours.float().mean().item():.4f}")
    print("done", round(hours.float().std().item(), 4))


main()
