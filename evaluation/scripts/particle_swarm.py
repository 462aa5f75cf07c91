import argparse
import math

import torch


def rastrigin(x):
    return (x.square() - 10 * torch.cos(2 * math.pi * x) + 10).sum(-1)


class Swarm:
    def __init__(self, particles, dimensions):
        self.position = torch.empty(particles, dimensions).uniform_(-5, 5)
        self.velocity = torch.zeros(particles, dimensions)
        self.best = self.position.clone()
        self.score = rastrigin(self.position)

    @staticmethod
    @torch.compile
    def move(position, velocity, best, score, leader, r1, r2):
        velocity = 0.7 * velocity + 1.5 * r1 * (best - position) + 1.5 * r2 * (leader - position)
        position = (position + velocity).clamp(-5.12, 5.12)
        value = rastrigin(position)
        better = value < score
        return (
            position,
            velocity,
            torch.where(better[:, None], position, best),
            torch.where(better, value, score),
        )

    def step(self):
        leader = self.best[self.score.argmin()]
        r1, r2 = torch.rand(2, *self.position.shape).unbind()
        self.position, self.velocity, self.best, self.score = self.move(
            self.position, self.velocity, self.best, self.score, leader, r1, r2
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=120000)
    args = parser.parse_args()
    torch.manual_seed(0)
    swarm = Swarm(1024, 16)
    with torch.no_grad():
        for generation in range(args.generations):
            swarm.step()
            if generation % 5000 == 0:
                print(generation, swarm.score.min().item())


if __name__ == "__main__":
    main()
