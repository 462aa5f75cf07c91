"""Sensitivities of a book of options to spot, volatility and rate, tick by tick."""
import sys

import torch

from desk.book import OptionBook
from desk.greeks import GreekEngine


def main(ticks):
    torch.manual_seed(1)
    book = OptionBook(contracts=160)
    engine = GreekEngine(nodes=2048)
    spot, vol, rate = torch.tensor(100.0), torch.tensor(0.2), torch.tensor(0.03)
    exposure = torch.zeros(3)
    for tick in range(ticks):
        spot = spot * torch.exp(0.001 * torch.randn(()))
        vol = (vol + 0.0005 * torch.randn(())).clamp(0.05, 0.8)
        value, greeks = engine(book, spot, vol, rate)
        exposure = 0.95 * exposure + 0.05 * torch.stack([g @ book.amounts for g in greeks])
        if tick % 500 == 499:
            print(f"tick {tick + 1}: value {value @ book.amounts:.1f}, delta {exposure[0]:.2f}, vega {exposure[1]:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
