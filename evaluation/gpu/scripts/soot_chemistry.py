"""Box model of soot ageing: the same small set of rate equations in every cell of the grid."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
CELLS = int(os.environ.get("CELLS", str(160 * 1024 * 1024)))
DT = 0.02

torch.manual_seed(9)
device = torch.device("cuda")


def rates(fresh, coated, acid, ozone, light, heat):
    """Time derivatives of fresh and coated soot, sulphuric acid and ozone."""
    arrhenius = torch.exp(-1.2 / heat)
    uptake = 0.8 * acid * fresh / (0.1 + acid + fresh)
    oxidation = 0.3 * arrhenius * ozone * fresh
    shedding = 0.05 * light * coated
    source = 0.02 + 0.01 * light
    photolysis = 0.4 * light * ozone
    formation = 0.25 * light * torch.sqrt(acid + 0.01)
    d_fresh = source - uptake - oxidation + shedding
    d_coated = uptake + oxidation - shedding - 0.03 * coated
    d_acid = 0.05 * arrhenius - 0.5 * uptake
    d_ozone = formation - photolysis - 0.2 * oxidation
    return d_fresh, d_coated, d_acid, d_ozone


def advance(fresh, coated, acid, ozone, light, heat):
    """Heun's method, concentrations kept from becoming negative."""
    state = (fresh, coated, acid, ozone)
    k1 = rates(*state, light, heat)
    guess = [torch.relu(s + DT * k) for s, k in zip(state, k1)]
    k2 = rates(*guess, light, heat)
    return tuple(torch.relu(s + 0.5 * DT * (a + b)) for s, a, b in zip(state, k1, k2))


advance = torch.compile(advance, mode="max-autotune-no-cudagraphs")

state = tuple(torch.rand(CELLS, device=device) for _ in range(4))
light = torch.rand(CELLS, device=device)
heat = 0.8 + 0.4 * torch.rand(CELLS, device=device)

with torch.no_grad():
    for _ in range(WARMUP):
        state = advance(*state, light, heat)

    start = STEPS // 2
    for step in range(STEPS):
        if step == start:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        state = advance(*state, light, heat)
        if step % 500 == 0:
            print(f"step {step:5d}  coated soot {state[1].mean().item():.5f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")
