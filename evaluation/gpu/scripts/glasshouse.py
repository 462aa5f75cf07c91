"""Glasshouse climate: compartments exchange air down a row of bays; the controller of each
bay either opens its vents or fires its burner depending on the mean state it sees."""
import os
import time

import torch

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

SCENARIOS = 512 if SMALL else 16384
LEVELS = 16
BAYS = 14
SETPOINTS = [18.0 + 0.35 * i for i in range(BAYS)]


def vent(air, outside):
    """Stack-driven exchange with the outside air."""
    draught = torch.sqrt(torch.clamp(air - outside, min=0.0) + 0.01)
    return air - 0.04 * draught * (air - outside)


def burn(air, outside):
    """Burner on: warmth rises, losses through the glass."""
    loss = 0.002 * (air - outside)
    return air + 0.22 * torch.exp(-0.02 * (air - 12.0)) - loss


def bay(air, outside, setpoint):
    too_warm = air.mean() > setpoint
    return torch.cond(too_warm, vent, burn, (air, outside))


def hour(air, outside):
    """Air moves from bay to bay, every bay acts on what it receives."""
    trace = []
    for setpoint in SETPOINTS:
        air = bay(air, outside, setpoint)
        mixed = 0.5 * (air + air.mean(dim=-1, keepdim=True))
        air = 0.9 * air + 0.1 * mixed
        trace.append(air.amax())
    return air, torch.stack(trace)


def main():
    g = torch.Generator(device=dev).manual_seed(2)
    air = 19.0 + 2.0 * torch.rand(SCENARIOS, LEVELS, device=dev, generator=g)
    base = 6.0 + torch.rand(SCENARIOS, 1, device=dev, generator=g)
    day = torch.sin(torch.arange(24, device=dev) * (2 * torch.pi / 24))
    run_hour = torch.compile(hour)
    warmest = torch.zeros(BAYS, device=dev)

    half, t0 = STEPS // 2, None
    with torch.no_grad():
        for k in range(STEPS):
            if k == half:
                if dev.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            outside = (base + 5.0 * day[k % 24]).expand(SCENARIOS, LEVELS).contiguous()
            air, trace = run_hour(air, outside)
            warmest = torch.maximum(warmest, trace)
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"air {air.mean().item():.3f}  warmest {warmest.max().item():.3f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
