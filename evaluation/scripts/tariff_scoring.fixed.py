"""Score portfolios of motor policies against negative-binomial claim tables."""
import os
import logging
import time
from typing import NamedTuple

import torch

torch.set_num_threads(1)
logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("tariff")

CELLS = 8192
POLICIES = 6000
COVERS = 64
STEPS = int(os.environ.get("STEPS", "5000"))


class Table(NamedTuple):
    shape: torch.Tensor
    mean: torch.Tensor


def cell_scores(table, count):
    """Log-probability of `count` claims for every tariff cell."""
    r, m = table.shape, table.mean
    logp = torch.lgamma(count + r) - torch.lgamma(r) - torch.lgamma(count + 1.0)
    return logp + r * torch.log(r / (r + m)) + count * torch.log(m / (r + m))


def portfolio(scores, cells, exposure):
    picked = scores[cells]
    per_policy = (picked * exposure).sum(dim=1)
    return per_policy, per_policy.mean()


def build(seed):
    g = torch.Generator().manual_seed(seed)
    table = Table(
        shape=torch.rand(CELLS, generator=g) * 4 + 0.5,
        mean=torch.rand(CELLS, generator=g) * 2 + 0.1,
    )
    cells = torch.randint(0, CELLS, (POLICIES, COVERS), generator=g)
    exposure = torch.rand(POLICIES, COVERS, generator=g)
    return table, cells, exposure


def main():
    table, cells, exposure = build(7)
    counts = [torch.randint(0, 6, (CELLS,)).float() for _ in range(8)]
    per_cell = torch.compile(cell_scores)
    score = torch.compile(portfolio)

    with torch.no_grad():
        for c in counts[:3]:
            score(per_cell(table, c), cells, exposure)

        timer = []
        total = torch.zeros(())
        for n in range(STEPS):
            t0 = time.perf_counter()
            _, avg = score(per_cell(table, counts[n % 8]), cells, exposure)
            timer.append(time.perf_counter() - t0)
            total += avg
            if n % 1500 == 0:
                log.info("scenario %d mean score %.4f", n, avg.item())

    timer.sort()
    log.info("overall %.5f", (total / STEPS).item())
    log.info("median step %.3f ms", timer[len(timer) // 2] * 1e3)


if __name__ == "__main__":
    main()
