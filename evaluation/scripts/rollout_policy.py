"""Off-policy control of a batch of simulated pendulums with a frozen behaviour policy."""
import copy
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 5000))
ENVS = 2048
torch.set_num_threads(1)


class Snake(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.freq = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.sigmoid(x) + torch.sin(self.freq * x).square() * torch.tanh(self.freq - x)


class Policy(nn.Module):
    def __init__(self, obs=3, width=32, depth=5):
        super().__init__()
        layers, last = [], obs
        for _ in range(depth):
            layers += [nn.Linear(last, width), nn.LayerNorm(width), Snake(width)]
            last = width
        self.body = nn.Sequential(*layers)
        self.mu = nn.Linear(width, 1)
        self.log_std = nn.Linear(width, 1)

    def forward(self, obs):
        h = self.body(obs)
        return torch.tanh(self.mu(h)), self.log_std(h).clamp(-4, 1)


def pendulum(state, action):
    th, om = state.unbind(-1)
    om = om + 0.05 * (9.8 * torch.sin(th) + 2.0 * action.squeeze(-1) - 0.1 * om)
    th = th + 0.05 * om
    return torch.stack((th, om.clamp(-8, 8)), -1)


def observe(state):
    th, om = state.unbind(-1)
    return torch.stack((th.cos(), th.sin(), om / 8), -1)


def main():
    torch.manual_seed(4)
    policy = Policy()
    policy.compile()
    optim = torch.optim.Adam(policy.parameters(), lr=3e-4)
    behaviour = copy.deepcopy(policy).requires_grad_(False)
    state = torch.randn(ENVS, 2)
    memory, every = [], max(1, STEPS // 10)
    t0, s0 = None, 0
    for step in range(STEPS):
        if step == 3:
            t0, s0 = time.perf_counter(), step
        obs = observe(state)
        with torch.no_grad():
            mu, log_std = behaviour(obs)
            action = mu + log_std.exp() * torch.randn_like(mu)
        state = pendulum(state, action)
        memory.append((obs, action))
        if step % 50 == 0:
            obs_b, act_b = memory[-1]
            mu, log_std = policy(obs_b)
            loss = (((act_b - mu) / log_std.exp()).square() * 0.5 + log_std).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
            memory.clear()
        if step % 500 == 0:
            behaviour.load_state_dict(policy.state_dict())
        if step > 3 and step % every == 0:
            ms = (time.perf_counter() - t0) / (step - s0) * 1e3
            print(f"step {step}: upright {state[:, 0].cos().mean():.3f} loss {loss.item():.4f}  {ms:.3f} ms/step")
            t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
