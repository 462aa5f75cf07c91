"""Ensemble ascent of weather balloons: buoyancy, leaking gas, drifting wind."""
import os
import dataclasses
import time
import torch

torch.manual_seed(3)

MEMBERS = 200000


@dataclasses.dataclass(frozen=True)
class Flight:
    height: torch.Tensor
    speed: torch.Tensor
    gas: torch.Tensor
    drift: torch.Tensor
    clock: float = 0.0


@torch.compile
def advance(flight, leak, dt):
    air = 1.2 * torch.exp(-flight.height / 8.4)
    volume = flight.gas / (air + 0.05)
    lift = 9.8 * (air * volume * 0.9 - 0.55) - 0.4 * flight.speed * flight.speed.abs() * air
    gust = torch.sin(0.7 * flight.height + 0.05 * flight.clock) * torch.exp(-0.02 * flight.height)
    speed = flight.speed + dt * torch.tanh(lift)
    return dataclasses.replace(
        flight,
        height=(flight.height + 0.01 * dt * speed).clamp(min=0.0),
        speed=speed,
        gas=flight.gas * torch.exp(-leak * dt * torch.sigmoid(flight.height - 5.0)),
        drift=flight.drift + dt * gust * torch.log1p(flight.height),
        clock=flight.clock + dt,
    )


def launch():
    return Flight(
        height=torch.rand(MEMBERS),
        speed=torch.zeros(MEMBERS),
        gas=0.7 + 0.1 * torch.rand(MEMBERS),
        drift=torch.zeros(MEMBERS),
    )


def main():
    leak = 1e-3 * torch.rand(MEMBERS)
    flight = launch()
    start = time.time()
    for step in range(int(os.environ.get("STEPS", "8000"))):
        flight = advance(flight, leak, 0.25)
        if step % 800 == 799:
            print(f"t {flight.clock:7.1f}s  height {flight.height.mean().item():.3f} km  "
                  f"drift {flight.drift.abs().mean().item():.2f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
