"""Ferry berth wear: every landing is added to a running ledger of the pier."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(12)


@torch.library.custom_op("pier::book", mutates_args=("ledger",))
def book(ledger: torch.Tensor, force: torch.Tensor) -> None:
    ledger.mul_(0.98).add_(force)


@book.register_fake
def _(ledger, force):
    return None


class Pier(torch.nn.Module):
    def __init__(self, piles):
        super().__init__()
        self.soft = torch.nn.Parameter(torch.rand(piles) + 0.5)
        self.register_buffer("ledger", torch.zeros(piles))

    def forward(self, swell):
        push = torch.tanh(swell * self.soft) * torch.exp(-swell * swell)
        push = push + torch.sigmoid(swell - 1.0) * torch.sin(swell)
        book(self.ledger, push.abs().mean(0))
        return torch.log1p(push.square())


pier = Pier(512)
land = torch.compile(pier)
swells = torch.randn(8, 1024, 512)
peak = 0.0

with torch.no_grad():
    for step in range(STEPS):
        stress = land(swells[step % 8])
        peak = max(peak, stress.max().item())
        if step % 500 == 0:
            print(f"{step:6d} wear {pier.ledger.mean().item():.4f} peak {peak:.4f}")

print("worst pile", int(pier.ledger.argmax()), f"{pier.ledger.max().item():.4f}")
