"""Contextual bandit that routes parcels to sorting chutes.

Observations arrive one parcel at a time and are kept in a bounded history of
small tensors.  Every tick a value function is refreshed on the whole recent
history and the chute policy is re-estimated from it.
"""
import os
import random
import time
from collections import deque

import torch

torch.set_num_threads(1)
torch.manual_seed(2)

STEPS = int(os.environ.get("STEPS", "28000"))
HISTORY = 256
FEATURES = 20
CHUTES = 6
LINES = 3


class ParcelStream:
    def __init__(self, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.rand = random.Random(seed)
        self.truth = torch.randn(FEATURES, CHUTES, generator=self.gen) * 0.5
        self.bank = [torch.randn(FEATURES, generator=self.gen) for _ in range(2048)]

    def __next__(self):
        base = self.bank[self.rand.randrange(len(self.bank))]
        return base + 0.01

    def reward(self, x: torch.Tensor, chute: int) -> torch.Tensor:
        return torch.tanh(x @ self.truth[:, chute])


def refresh(x: torch.Tensor, rewards: torch.Tensor, onehot: torch.Tensor,
            weights: torch.Tensor, rate: float):
    scale = x.square().mean(0).add(1e-3).rsqrt()
    z = torch.clamp(x * scale, -3.0, 3.0)
    pred = torch.tanh(z @ weights)
    err = (pred - rewards.unsqueeze(1)) * onehot
    grad = z.t() @ (err * (1.0 - pred * pred)) / len(x)
    new = weights - rate * grad
    return new * 0.9995, scale, err.abs().sum() / onehot.sum()


refresh_fast = torch.compile(refresh)


class Router:
    def __init__(self, seed: int):
        self.weights = torch.zeros(FEATURES, CHUTES)
        self.scale = torch.ones(FEATURES)
        self.history: deque = deque(maxlen=HISTORY)
        self.rewards = torch.zeros(HISTORY)
        self.onehot = torch.zeros(HISTORY, CHUTES)
        self.rand = random.Random(seed)

    def choose(self, x: torch.Tensor, explore: float = 0.1) -> int:
        if self.rand.random() < explore:
            return self.rand.randrange(CHUTES)
        return int(torch.argmax((x * self.scale) @ self.weights))

    def record(self, x: torch.Tensor, chute: int, reward: torch.Tensor) -> None:
        self.history.append(x)
        self.rewards = torch.roll(self.rewards, -1)
        self.rewards[-1] = reward
        self.onehot = torch.roll(self.onehot, -1, 0)
        self.onehot[-1] = 0.0
        self.onehot[-1, chute] = 1.0

    def learn(self) -> torch.Tensor:
        self.weights, self.scale, err = refresh_fast(
            torch.stack(list(self.history)), self.rewards, self.onehot, self.weights, 0.05
        )
        return err


def main():
    stream = ParcelStream(7)
    routers = [Router(5 + k) for k in range(LINES)]
    for router in routers:
        while len(router.history) < HISTORY:
            x = next(stream)
            chute = router.choose(x, explore=1.0)
            router.record(x, chute, stream.reward(x, chute))
    t0 = time.time()
    total = torch.zeros(())
    with torch.no_grad():
        for step in range(STEPS):
            for router in routers:
                x = next(stream)
                chute = router.choose(x)
                r = stream.reward(x, chute)
                router.record(x, chute, r)
                err = router.learn()
                total += r
            if step % 7000 == 0:
                print(f"{step:6d} err {err.item():.4f}")
    mean = total.item() / (STEPS * LINES)
    print(f"mean reward {mean:.4f}  err {err.item():.4f}  {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
