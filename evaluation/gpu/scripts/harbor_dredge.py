"""Estimate dredging depth from echo strips in half precision with loss scaling."""
import math
import os

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "4000"))
STRIPS, ECHOES, WIDTH = 12_288, 160, 768


class EchoBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.full((WIDTH,), 0.1))

    def forward(self, x):
        value, gate = self.up(self.norm(x)).chunk(2, -1)
        return x + self.scale * F.dropout(self.down(value * F.silu(gate)), 0.1, self.training)


class Dredge(nn.Module):
    def __init__(self, depth=5):
        super().__init__()
        self.listen = nn.Linear(ECHOES, WIDTH)
        self.blocks = nn.ModuleList(EchoBlock() for _ in range(depth))
        self.depth = nn.Linear(WIDTH, 1)

    def forward(self, echoes):
        x = self.listen(echoes)
        for block in self.blocks:
            x = block(x)
        return self.depth(x).squeeze(-1).float()


def warm_then_cosine(step):
    if step < 200:
        return (step + 1) / 200
    return 0.55 + 0.45 * math.cos(min(1.0, step / 20_000) * math.pi)


def main():
    torch.manual_seed(90)
    model = Dredge().to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-4, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, warm_then_cosine)
    scaler = torch.amp.GradScaler(DEVICE.type, init_scale=2.0**14, growth_interval=250)
    sound = torch.compile(model)
    echoes = torch.randn(3, STRIPS, ECHOES, device=DEVICE)
    depth = echoes[..., :8].sum(-1).tanh() + 0.1 * torch.randn(3, STRIPS, device=DEVICE)

    for step in range(STEPS):
        k = step % 3
        with torch.autocast(DEVICE.type, dtype=torch.float16):
            guess = sound(echoes[k])
        loss = F.huber_loss(guess, depth[k])
        scaler.scale(loss).backward()
        scaler.unscale_(optimiser)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimiser)
        scaler.update()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.5f} norm {norm.item():.4f} scale {scaler.get_scale():.0f}")
    print("scale of block 0", round(model.blocks[0].scale.mean().item(), 5))


main()
