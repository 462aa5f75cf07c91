"""Propagates calibrated readings that carry their unit along."""
import argparse

import torch


class Quantity(torch.Tensor):
    """A tensor that remembers its unit through arithmetic."""

    unit = ""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        units = {a.unit for a in args if isinstance(a, Quantity)}
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, Quantity):
            out.unit = "*".join(sorted(u for u in units if u))
        return out


def quantity(data, unit):
    q = data.as_subclass(Quantity)
    q.unit = unit
    return q


@torch.compile
def thermocouple(volts, cold):
    x = volts
    for coefficient in (0.98, -0.03, 0.004, -0.0007, 0.0001):
        x = x + coefficient * torch.tanh(x) * torch.exp(-x * x)
    return x + torch.sin(cold) * 0.01


@torch.compile
def drift(x, reference):
    gap = x - reference
    return torch.sqrt(gap * gap + 1e-6) / (1.0 + reference.abs())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=220000)
    args = ap.parse_args()
    torch.manual_seed(51)
    readings = [quantity(torch.randn(64, 32), "mV") for _ in range(50)]
    cold = quantity(torch.rand(64, 32), "K")
    reference = quantity(torch.rand(64, 32), "mV")
    worst = 0.0
    for step in range(args.steps):
        value = thermocouple(readings[step % 50], cold)
        off = drift(value, reference)
        if step % 500 == 0:
            worst = max(worst, float(off.max()))
            print(f"{step:6d} worst drift {worst:.5f} {off.unit}")


if __name__ == "__main__":
    main()
