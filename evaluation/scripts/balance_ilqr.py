"""Balances many small robots by random shooting; each trial has bodies of its own."""
import argparse
from dataclasses import dataclass

import torch


@dataclass
class Bodies:
    length: torch.Tensor
    weight: torch.Tensor
    friction: torch.Tensor

    @classmethod
    def drawn(cls, amount):
        return cls(0.4 + 0.4 * torch.rand(amount), 0.1 + 0.2 * torch.rand(amount), 0.05 * torch.rand(amount))


def controller(bodies, dt, horizon):
    length, weight, friction = bodies.length, bodies.weight, bodies.friction

    @torch.compile
    def shoot(angle, rate, pushes):
        cost = torch.zeros_like(pushes[0])
        for k in range(horizon):
            pull = 9.81 * torch.sin(angle) / length - friction * torch.tanh(8 * rate)
            rate = rate + dt * (pull + pushes[k] * torch.cos(angle) / (weight * length))
            angle = angle + dt * rate
            cost = cost + angle.square() + 0.05 * rate.square() + 0.01 * pushes[k].square()
        return cost

    return shoot


class Trial:
    def __init__(self, bodies, samples, horizon=8, dt=0.02):
        self.bodies, self.dt = bodies, dt
        self.shoot = controller(bodies, dt, horizon)
        self.angle = 0.3 * torch.randn(len(bodies.length))
        self.rate = torch.zeros_like(self.angle)
        self.pushes = torch.randn(horizon, samples, len(self.angle)) * 0.4

    def step(self):
        costs = self.shoot(self.angle, self.rate, self.pushes)
        push = self.pushes[0].gather(0, costs.argmin(0, keepdim=True))[0]
        pull = 9.81 * torch.sin(self.angle) / self.bodies.length + push / (self.bodies.weight * self.bodies.length)
        self.rate = (self.rate + self.dt * pull).clamp(-4, 4)
        self.angle = (self.angle + self.dt * self.rate).clamp(-1.2, 1.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--robots", type=int, default=64)
    parser.add_argument("--samples", type=int, default=1024)
    args = parser.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        for number in range(args.trials):
            trial = Trial(Bodies.drawn(args.robots), args.samples)
            for _ in range(args.moves):
                trial.step()
            print(f"trial {number}: mean tilt {float(trial.angle.abs().mean()):.3f}")


if __name__ == "__main__":
    main()
