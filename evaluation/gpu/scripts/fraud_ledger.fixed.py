"""Streaming account profiles for card-fraud scoring.

A table holds a decayed feature profile for each account. A micro-batch of transactions looks its
accounts up, scores every transaction against the profile and writes the refreshed profiles back.
"""
import os
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F

device = "cuda"

ACCOUNTS = 8_388_608
FEATURES = 96
BATCH = 65_536
BATCHES = int(os.environ.get("STEPS", "10000"))
REPORT = 1_000
HALF_LIFE = 12.0


class Batch(NamedTuple):
    account: torch.Tensor      # distinct within a batch, the gateway merges repeats
    amount: torch.Tensor
    signal: torch.Tensor


class Scorer(torch.nn.Module):
    def __init__(self, features, hidden=256):
        super().__init__()
        self.hidden = torch.nn.Linear(3 * features + 1, hidden)
        self.out = torch.nn.Linear(hidden, 1)

    def forward(self, profile, signal, amount):
        joined = torch.cat([profile, signal, profile * signal, amount[:, None]], dim=1)
        return torch.sigmoid(self.out(F.silu(self.hidden(joined)))).squeeze(1)


def refresh(profile, signal, amount, risk):
    """Decayed mean of the signal, trusted less when the transaction looks bad or tiny."""
    trust = (1.0 - risk) * torch.log1p(amount) / 10.0
    rate = (1.0 - 0.5 ** (1.0 / HALF_LIFE)) * trust.clamp(0.0, 1.0)
    return torch.lerp(profile, signal, rate[:, None])


class Ledger:
    def __init__(self, scorer):
        self.scorer = scorer
        self.table = torch.zeros(ACCOUNTS, FEATURES, device=device)
        self.flagged = torch.zeros((), device=device)
        self.process = torch.compile(self._process)

    def _process(self, table, flagged, batch):
        profile = table.index_select(0, batch.account)
        risk = self.scorer(profile, batch.signal, batch.amount)
        profile = refresh(profile, batch.signal, batch.amount, risk)
        table = table.index_copy_(0, batch.account, profile)
        return table, flagged + (risk > 0.5).sum(), risk

    def feed(self, batch):
        self.table, self.flagged, risk = self.process(self.table, self.flagged, batch)
        return risk


def traffic(count, generator):
    """A few prepared micro-batches; accounts are distinct inside each one."""
    batches = []
    for n in range(count):
        offset = int(torch.randint(0, ACCOUNTS, (1,), generator=generator))
        account = (offset + torch.arange(BATCH) * 127) % ACCOUNTS
        amount = torch.rand(BATCH, generator=generator).pow(3) * 900.0
        signal = torch.randn(BATCH, FEATURES, generator=generator)
        batches.append(Batch(account.to(device), amount.to(device), signal.to(device)))
    return batches


def main():
    gen = torch.Generator().manual_seed(404)
    torch.manual_seed(404)
    torch.set_float32_matmul_precision("high")
    ledger = Ledger(Scorer(FEATURES).to(device).eval())
    batches = traffic(12, gen)
    for b in batches[:3]:
        ledger.feed(b)
    torch.cuda.synchronize()

    began = time.perf_counter()
    for n in range(1, BATCHES + 1):
        risk = ledger.feed(batches[n % len(batches)])
        if n % REPORT == 0:
            mean = risk.mean().item()
            print(f"batch {n:6d}  mean risk {mean:.4f}  flagged {int(ledger.flagged):d}  "
                  f"{(time.perf_counter() - began) / n * 1e3:.3f} ms/batch")
    torch.cuda.synchronize()
    touched = (ledger.table[:, 0] != 0).sum().item()
    print(f"{touched} profiles in use")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
