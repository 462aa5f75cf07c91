import torch


class HeunSampler:
    def __init__(self, net, settings):
        self.net = net
        ramp = torch.linspace(0, 1, settings["levels"])
        high, low = (settings[k] ** (1 / settings["rho"]) for k in ("sigma_max", "sigma_min"))
        self.sigmas = (high + ramp * (low - high)) ** settings["rho"]

    @torch.no_grad()
    def draw(self, batch, points):
        x = torch.randn(batch, points, 2) * self.sigmas[0]
        for now, then in zip(self.sigmas[:-1], self.sigmas[1:]):
            slope = (x - self.net(x, now.expand(batch))) / now
            guess = x + (then - now) * slope
            other = (guess - self.net(guess, then.expand(batch))) / then
            x = x + (then - now) * (slope + other) / 2
        return x
