"""Frost risk of orchard cells from a night of sensor traces."""
import os
import sys


def prepare(argv):
    """Settings shared by the station's jobs; every one can be overridden from outside."""
    defaults = {
        "TORCH_SHOW_CPP_STACKTRACES": "0",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    return int(os.environ.get("STEPS", "800")), "--quiet" in argv


STEPS, QUIET = prepare(sys.argv[1:])

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda")
CELLS, TRACE, WIDTH = 8192, 128, 768


class NightBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        a, b = self.up(self.norm(x)).chunk(2, -1)
        return x + self.down(F.gelu(a) * torch.sigmoid(b))


class FrostModel(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.read = nn.Linear(TRACE, WIDTH)
        self.blocks = nn.Sequential(*[NightBlock() for _ in range(depth)])
        self.risk = nn.Linear(WIDTH, 1)

    def forward(self, trace):
        return self.risk(self.blocks(torch.tanh(self.read(trace)))).squeeze(-1)


def main():
    torch.manual_seed(19)
    torch.set_float32_matmul_precision("high")
    model = FrostModel().to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    judge = torch.compile(model)
    traces = torch.randn(4, CELLS, TRACE, device=DEVICE)
    frost = (traces.mean(-1) + 0.1 * traces[..., 0] > 0).float()
    for step in range(STEPS):
        k = step % 4
        loss = F.binary_cross_entropy_with_logits(judge(traces[k]), frost[k])
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 100 == 99 and not QUIET:
            print(f"step {step + 1} loss {loss.item():.5f}")
    print("last loss", round(loss.item(), 5))


main()
