import dataclasses
import random

import torch

TICKERS = [a + b for a in ("AX", "BR", "CO", "DU", "EK", "FJ") for b in ("1", "2", "3", "4", "5")]


@dataclasses.dataclass
class Quote:
    ticker: str
    spot: torch.Tensor
    sigma: torch.Tensor


def quotes(count):
    rng = random.Random(31)
    for _ in range(count):
        yield Quote(rng.choice(TICKERS), torch.tensor(rng.uniform(80, 120)), torch.tensor(rng.uniform(0.1, 0.4)))
