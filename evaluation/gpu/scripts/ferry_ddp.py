"""Ferry punctuality model under the fleet's usual distributed launcher, here with a single rank."""
import os

import torch
import torch.distributed as dist
from torch import nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "5000"))
CALLS, PORTS, WIDTH, DEPTH = 16_384, 96, 512, 4


class TideBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.into = nn.Linear(WIDTH, WIDTH)
        self.back = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.into(self.norm(x))
        h = F.gelu(h) * torch.sigmoid(h) + 0.1 * torch.sin(h)
        return x + torch.tanh(self.back(h))


class Punctuality(nn.Module):
    def __init__(self):
        super().__init__()
        self.berth = nn.Linear(PORTS, WIDTH)
        self.blocks = nn.ModuleList(TideBlock() for _ in range(DEPTH))
        self.delay = nn.Linear(WIDTH, 1)

    def forward(self, calls):
        x = self.berth(calls)
        for block in self.blocks:
            x = block(x)
        return self.delay(x).squeeze(-1)


def fleet_mean(value):
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def main():
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    backend = "nccl" if DEVICE.type == "cuda" else "gloo"
    if DEVICE.type == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = DistributedDataParallel(
            torch.compile(Punctuality().to(DEVICE)), bucket_cap_mb=64, gradient_as_bucket_view=True
        )
        optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
        calls = torch.randn(4, CALLS, PORTS, device=DEVICE)
        delay = torch.relu(calls[..., 0] + calls[..., 1] * calls[..., 2])
        for step in range(STEPS):
            k = step % 4
            loss = F.smooth_l1_loss(model(calls[k]), delay[k])
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            if step % 100 == 99:
                print(f"step {step + 1} fleet loss {fleet_mean(loss).item():.5f}")
    finally:
        dist.destroy_process_group()


main()
