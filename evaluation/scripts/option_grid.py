import os
import math

import torch

torch.set_num_threads(1)
torch.manual_seed(71)

STEPS = int(os.environ.get("STEPS", "46000"))
QUOTES = 400_000


@torch.compile
def price_and_greeks(spot, strike, tau, vol, rate):
    root = vol * torch.sqrt(tau)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * vol * vol) * tau) / root
    d2 = d1 - root
    n1 = 0.5 * (1 + torch.erf(d1 / math.sqrt(2)))
    n2 = 0.5 * (1 + torch.erf(d2 / math.sqrt(2)))
    disc = torch.exp(-rate * tau)
    call = spot * n1 - strike * disc * n2
    vega = spot * torch.sqrt(tau) * torch.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
    return call.sum(), n1.sum(), vega.sum()


spot = 80 + 40 * torch.rand(QUOTES)
strike = 80 + 40 * torch.rand(QUOTES)
tau = 0.1 + torch.rand(QUOTES)
vol = 0.1 + 0.3 * torch.rand(QUOTES)
rates = torch.linspace(0.0, 0.05, 32)

book = torch.zeros(3)
for step in range(STEPS):
    book += torch.stack(price_and_greeks(spot, strike, tau, vol, rates[step % 32]))

print("book", (book / STEPS / QUOTES).tolist())
