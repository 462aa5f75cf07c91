import torch

from .stream import TICKERS


def cumulative(x):
    return 0.5 * (1 + torch.erf(x * 0.7071067811865476))


class Pricer:
    def __init__(self, strikes):
        self.strikes = torch.linspace(60, 150, strikes)[:, None]
        self.expiries = torch.linspace(0.05, 2.0, 250)[None, :]
        self.carry = {ticker: 0.001 * place for place, ticker in enumerate(TICKERS)}
        self._value = torch.compile(self._black)

    def __call__(self, quote):
        return self._value(quote.ticker, quote.spot, quote.sigma)

    def _black(self, ticker, spot, sigma):
        carry = self.carry[ticker]
        root = sigma * self.expiries.sqrt()
        forward = spot * torch.exp(carry * self.expiries)
        upper = (torch.log(forward / self.strikes) + 0.5 * root.square()) / root
        call = forward * cumulative(upper) - self.strikes * cumulative(upper - root)
        vega = forward * torch.exp(-0.5 * upper.square()) * self.expiries.sqrt()
        return call * torch.exp(-0.03 * self.expiries) + 0.01 * torch.tanh(vega / 100)
