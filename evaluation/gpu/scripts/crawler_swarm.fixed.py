"""Evolution strategies on a batch of simple crawling bodies."""
import os
import time

import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector

STEPS = int(os.environ.get("STEPS", "600"))
MEMBERS = 768
ENVS = 256
OBS = 32
ACT = 8
WIDTH = 96
DEPTH = 10
ROLLOUT = 8
SIGMA = 0.05
LR = 0.02

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.tanh(self.fc(self.norm(x)))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(OBS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.out = nn.Linear(WIDTH, ACT)

    def forward(self, obs):
        h = self.inp(obs)
        for layer in self.layers:
            h = layer(h)
        return torch.tanh(self.out(h))


class Bodies:
    def __init__(self):
        g = torch.Generator().manual_seed(5)
        self.drift = (torch.randn(OBS, OBS, generator=g) / OBS ** 0.5 * 0.9).to(device)
        self.push = (torch.randn(ACT, OBS, generator=g) * 0.3).to(device)
        self.start = torch.randn(ENVS, OBS, generator=g).to(device)

    def advance(self, obs, act):
        return torch.addmm(obs @ self.drift, act, self.push)


def rollout(act_fn, bodies):
    obs, total = bodies.start, 0.0
    for _ in range(ROLLOUT):
        act = act_fn(obs)
        obs = bodies.advance(obs, act)
        total = total + obs[:, 0].mean() - 0.01 * act.square().mean()
    return total


@torch.no_grad()
def main():
    policy = Policy().to(device)
    act_fn = torch.compile(policy, mode="reduce-overhead")
    bodies = Bodies()
    sizes = [p.numel() for p in policy.parameters()]
    center = parameters_to_vector(policy.parameters()).clone()
    print("parameters per member:", center.numel())

    for _ in range(3):
        rollout(act_fn, bodies)

    noise = torch.randn(MEMBERS, center.numel(), device=device)
    swarm = center + SIGMA * noise
    fitness = torch.zeros(MEMBERS, device=device)
    if device == "cuda":
        torch.cuda.synchronize()

    t0 = time.time()
    for step in range(STEPS):
        member = step % MEMBERS
        for p, w in zip(policy.parameters(), swarm[member].split(sizes)):
            p.copy_(w.view_as(p))
        fitness[member] = rollout(act_fn, bodies)

        if member == MEMBERS - 1:
            rank = fitness.argsort().argsort().float() / (MEMBERS - 1) - 0.5
            center = center + LR / (MEMBERS * SIGMA) * (rank @ noise)
            noise.normal_()
            torch.add(center, noise, alpha=SIGMA, out=swarm)
        if step % 100 == 0:
            print(f"member {step:5d}  return {fitness[member].item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    span = time.time() - t0
    print(f"evaluated {STEPS} members, {span / STEPS * 1e3:.2f} ms per member")


if __name__ == "__main__":
    main()
