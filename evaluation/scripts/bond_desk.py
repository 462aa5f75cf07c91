"""Price ladders of bonds under many rate scenarios."""
import os
import time

import torch
import torch._inductor.config as ind

ind.cpp.simdlen = 1

STEPS = int(os.environ.get("STEPS", "1200"))


def ladder(rate, vol, coupon, years):
    drift = rate - 0.5 * vol * vol
    short = drift + vol * torch.tanh(rate * 10)
    disc = torch.exp(-short * years)
    conv = years * years * disc * torch.sigmoid(vol * 20)
    price = coupon * (1 - disc) / (short.abs() + 0.01) + 100 * disc
    return price + 0.5 * conv * vol * vol, torch.log1p(conv)


def main():
    torch.manual_seed(14)
    torch.set_num_threads(1)
    value = torch.compile(ladder)
    n = 200_000
    coupon = torch.rand(n) * 8
    years = torch.rand(n) * 30
    vol = torch.rand(n) * 0.2
    rates = torch.randn(8, n) * 0.02 + 0.03
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            price, conv = value(rates[step % 8], vol, coupon, years)
            if (step + 1) % 100 == 0:
                t1 = time.perf_counter()
                print(f"scenario {step + 1} mean {price.mean():.3f} {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
