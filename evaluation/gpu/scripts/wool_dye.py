"""Dye uptake in a vat of yarn: many tiny updates replayed from fixed buffers."""
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "90000"))
YARNS, DYES, TURNS = 16384, 64, 32
torch.manual_seed(33)


class Vat(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("clash", torch.randn(DYES, DYES) * 0.05)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("fibre", torch.rand(YARNS, 1) + 0.5)

    def forward(self, bath, cloth):
        self.count.add_(1.0)
        for _ in range(TURNS):
            free = torch.relu(bath - 0.2 * cloth)
            rival = torch.mm(cloth, self.clash)
            uptake = self.fibre * free / (1.0 + free + rival.abs())
            cloth = cloth + 0.02 * uptake - 0.004 * cloth
        return cloth, uptake.mean()


@torch.no_grad()
def main():
    vat = Vat().to("cuda")
    turn = torch.compile(vat, mode="reduce-overhead")
    bath = torch.empty(YARNS, DYES, device="cuda")
    cloth = torch.zeros(YARNS, DYES, device="cuda")
    recipes = [torch.rand(1, DYES, device="cuda") for _ in range(7)]
    log = []
    for step in range(STEPS):
        torch.compiler.cudagraph_mark_step_begin()
        bath.copy_(recipes[(step // 5) % 7].expand(YARNS, DYES))
        fresh, uptake = turn(bath, cloth)
        cloth.copy_(fresh)
        if step % 50 == 0:
            log.append(uptake.clone())
        if step % 2000 == 0:
            print("vat", step, "uptake", round(torch.stack(log).mean().item(), 6), "turns", int(vat.count))
            log.clear()


main()
