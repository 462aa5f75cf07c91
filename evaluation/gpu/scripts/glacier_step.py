"""Surface energy balance of a glacier: one explicit step over a large grid of
independent columns."""
import os
import time
import torch

STEPS = int(os.environ.get("STEPS", "25000"))
device = "cuda"
CELLS = 64_000_000
DT = 600.0

torch.manual_seed(4)


@torch.compile
def advance(temp, snow, sun, air):
    albedo = torch.where(snow > 0.05, 0.82, 0.35)
    absorbed = (1.0 - albedo) * sun
    emitted = 0.98 * 5.67e-8 * (temp * temp) * (temp * temp)
    sensible = 12.0 * (air - temp)
    flux = absorbed + 0.75 * 5.67e-8 * (air * air) * (air * air) - emitted + sensible
    warmed = temp + DT * flux / 4.2e5
    melt = torch.clamp(warmed - 273.15, min=0.0) * 1.2e-3
    melt = torch.minimum(melt, snow)
    return torch.clamp(warmed, max=273.15), snow - melt


temp = 260.0 + 10.0 * torch.rand(CELLS, device=device)
snow = torch.rand(CELLS, device=device)
sun = 300.0 * torch.rand(CELLS, device=device)
air = 265.0 + 12.0 * torch.rand(CELLS, device=device)

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    temp, snow = advance(temp, snow, sun, air)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = temp
