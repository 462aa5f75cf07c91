"""Corotational elasticity, explicit in time."""
import torch

from .body import edges


def rotation(shape, rounds=3):
    """The nearest rotation, by Higham's iteration."""
    turned = shape
    for _ in range(rounds):
        turned = 0.5 * (turned + torch.linalg.inv(turned).transpose(1, 2))
    return turned


class Solver:
    def __init__(self, body, dt, damping=0.4):
        self.body = body
        self.dt = dt
        self.damping = damping
        self.gravity = torch.tensor([0.0, 0.0, -9.81])

    def stress(self, places):
        body = self.body
        shape = edges(places, body.corners) @ body.rest
        turned = rotation(shape)
        strain = (shape * turned).sum((1, 2)) - 3
        first = body.stiffness * (shape - turned) + body.bulk * strain[:, None, None] * turned
        return (first.unsqueeze(2) * body.rest.unsqueeze(1)).sum(-1) * body.volume[:, None, None]

    def forces(self, places):
        pull = -self.stress(places).transpose(1, 2)
        pull = torch.cat([-pull.sum(1, keepdim=True), pull], 1)
        return torch.zeros_like(places).index_add_(0, self.body.corners.flatten(), pull.flatten(0, 1))

    @torch.compile
    def step(self, places, speeds):
        push = self.forces(places) / self.body.mass + self.gravity
        speeds = (speeds + self.dt * push) * (1 - self.damping * self.dt)
        places = places + self.dt * speeds
        under = (places[:, 2] < 0).unsqueeze(1)
        speeds = torch.where(under, 0.2 * speeds, speeds)
        places = torch.where(under & (torch.arange(3) == 2), torch.zeros_like(places), places)
        return places, speeds
