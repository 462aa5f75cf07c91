"""Prices by quadrature over the normal density; a payoff has a soft kink and a second, smaller one."""
import torch


@torch.compile
def quadrature_price(spot, vol, rate, strike, years, kick, grid, weights):
    drift = (rate - 0.5 * vol * vol) * years
    ends = spot * torch.exp(drift + vol * torch.sqrt(years) * grid)
    first = torch.nn.functional.softplus(4 * (ends - strike)) / 4
    second = kick * torch.nn.functional.softplus(4 * (ends - 1.1 * strike)) / 4
    worn = 1 - 0.05 * torch.tanh((ends / spot - 1).abs())
    return torch.exp(-rate * years) * (weights * (first + second) * worn).sum()
