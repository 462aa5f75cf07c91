"""Parameter sweep over isolated pacemaker cells (Aliev-Panfilov kinetics).

Every cell has its own excitability and drive current; the sweep asks which part of
that plane fires on its own and how often.  Cells do not couple, time stepping is Heun.
"""
import os
import time

import torch

device = "cuda"
SIDE = 11_264          # excitability x drive
STEPS = int(os.environ.get("STEPS", "20000"))
PRINT_EVERY = 2000
DT = 0.02


class Kinetics:
    k, a = 8.0, 0.12
    eps0, mu1, mu2 = 0.002, 0.20, 0.30

    @classmethod
    def slope(cls, u, v, excitability, drive):
        fast = cls.k * u * (u - cls.a) * (1.0 - u) * excitability - u * v + drive
        relax = cls.eps0 + cls.mu1 * v / (u.abs() + cls.mu2)
        slow = relax * (-v - cls.k * u * (u - cls.a - 1.0))
        return fast, slow


@torch.compile(fullgraph=True)
def heun(u, v, excitability, drive):
    du1, dv1 = Kinetics.slope(u, v, excitability, drive)
    du2, dv2 = Kinetics.slope(u + DT * du1, v + DT * dv1, excitability, drive)
    u_next = u + 0.5 * DT * (du1 + du2)
    v_next = v + 0.5 * DT * (dv1 + dv2)
    return u_next.clamp(-0.5, 1.5), v_next.clamp(0.0, 4.0)


class Sweep:
    """State and parameters of all the cells, flat on the device."""

    def __init__(self, side, seed):
        generator = torch.Generator(device=device).manual_seed(seed)
        excitability = torch.linspace(0.4, 1.6, side, device=device)
        drive = torch.linspace(0.0, 0.12, side, device=device)
        self.excitability = excitability[:, None].expand(side, side).reshape(-1).contiguous()
        self.drive = drive[None, :].expand(side, side).reshape(-1).contiguous()
        self.u = 0.02 * torch.rand(side * side, device=device, generator=generator)
        self.v = torch.zeros(side * side, device=device)
        self.side = side

    def step(self):
        self.u, self.v = heun(self.u, self.v, self.excitability, self.drive)

    def firing(self):
        return (self.u > 0.5).float().mean()

    def probe(self, grid=4):
        """A few single cells on a coarse grid over the plane."""
        picks = torch.linspace(0.1, 0.9, grid, device=device).mul(self.side).long()
        return self.u.view(self.side, self.side)[picks[:, None], picks[None, :]]


class Recorder:
    def __init__(self):
        self.samples = []

    def take(self, sweep):
        self.samples.append(sweep.probe())

    def spread(self):
        return torch.stack(self.samples).std(dim=0).max().item()


@torch.inference_mode()
def simulate():
    sweep = Sweep(SIDE, seed=2)
    recorder = Recorder()
    for _ in range(3):
        sweep.step()

    torch.cuda.synchronize()
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        sweep.step()
        if step % PRINT_EVERY == 0:
            recorder.take(sweep)
            share = sweep.firing().item()
            pace = 1e3 * (time.perf_counter() - began) / step
            print(f"t={step * DT:7.1f}  firing {100 * share:6.2f} %  {pace:.3f} ms/step")

    torch.cuda.synchronize()
    print(f"largest variation of a probed cell: {recorder.spread():.4f}")
    print(f"{SIDE * SIDE / 1e6:.0f} M cells, {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    simulate()
