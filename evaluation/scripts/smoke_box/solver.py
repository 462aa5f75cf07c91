import torch


def swirl(u, v):
    return (v.roll(-1, 1) - v.roll(1, 1) - u.roll(-1, 0) + u.roll(1, 0)) / 2


class SmokeBox:
    def __init__(self, side):
        self.u, self.v = torch.randn(2, side, side) * 0.1
        self.smoke = torch.rand(side, side)
        self.heat = torch.rand(side, side)

    @torch.compile
    def advance(self, u, v, smoke, heat, dt):
        spin = swirl(u, v)
        lift = torch.tanh(heat) * 0.3 - 0.05 * smoke
        push = torch.sign(spin) * torch.sqrt(spin.abs() + 1e-6) * 0.05
        u = (u + dt * (push.roll(1, 0) - u * (u - u.roll(1, 1)))) * 0.995
        v = (v + dt * (lift - push.roll(1, 1) - v * (v - v.roll(1, 0)))) * 0.995
        smoke = smoke - dt * (u * (smoke - smoke.roll(1, 1)) + v * (smoke - smoke.roll(1, 0)))
        smoke = smoke.clamp(0, 1)
        heat = heat * torch.exp(-dt * (0.2 + smoke)) + 0.01 * torch.sigmoid(8 * smoke - 4)
        leaks = torch.nonzero(smoke[0] > 0.98)
        return u, v, smoke, heat, leaks.shape[0]

    def step(self, dt=0.1):
        self.u, self.v, self.smoke, self.heat, leaks = self.advance(self.u, self.v, self.smoke, self.heat, dt)
        return leaks
