"""Loudness features: band energies are compressed with a bank of power laws
(Stevens exponents) and projected to a compact descriptor."""
import os
import time
import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "6000"))
device = "cuda"
FRAMES, BANDS = 262_144, 64
EXPONENTS = (0.11, 0.17, 0.23, 0.31, 0.42, 0.57, 0.68, 0.83)

torch.manual_seed(17)


class LoudnessBank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("exponents", torch.tensor(EXPONENTS))
        self.proj = nn.Linear(len(EXPONENTS) * BANDS, 32, dtype=torch.bfloat16)

    def forward(self, energy):
        bank = energy.unsqueeze(1).pow(self.exponents.unsqueeze(-1)).flatten(1)
        return self.proj(bank.to(torch.bfloat16))


model = LoudnessBank().to(device).eval()
describe = torch.compile(model)
energy = torch.rand(FRAMES, BANDS, device=device) + 1e-3

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    with torch.no_grad():
        out = describe(energy)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = out
