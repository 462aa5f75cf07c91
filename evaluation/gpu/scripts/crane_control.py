"""Off-policy actor-critic for the swing control of a container crane.

A cheap batched simulator fills the replay memory; one learner update follows every
simulated tick.  Only the learner lives on the GPU.
"""
import os
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
from torch import nn

device = torch.device("cuda")
Transition = namedtuple("Transition", "state action reward following done")

STATE, ACTION = 48, 4
BATCH = 1024
HIDDEN = 768
UPDATES = int(os.environ.get("STEPS", "1800"))
GAMMA, TAU = 0.985, 0.01


class CraneYard:
    """A row of cranes with pendulum-like loads and a lidar profile of the stack."""

    def __init__(self, cranes, rng):
        self.cranes, self.rng = cranes, rng
        self.mix = rng.normal(0, 0.35, (STATE, STATE)).astype(np.float32) / np.sqrt(STATE)
        self.push = rng.normal(0, 0.5, (ACTION, STATE)).astype(np.float32)
        self.state = rng.normal(0, 1, (cranes, STATE)).astype(np.float32)

    def tick(self):
        action = self.rng.uniform(-1, 1, (self.cranes, ACTION)).astype(np.float32)
        wind = self.rng.normal(0, 0.05, self.state.shape).astype(np.float32)
        after = np.tanh(self.state @ self.mix + action @ self.push) + wind
        reward = -np.square(after[:, :6]).sum(-1) - 0.01 * np.square(action).sum(-1)
        done = (np.abs(after[:, 0]) > 0.98).astype(np.float32)
        for i in range(self.cranes):
            yield Transition(self.state[i], action[i], float(reward[i]), after[i], float(done[i]))
        self.state = after


class ReplayMemory:
    def __init__(self, capacity):
        self.items = deque(maxlen=capacity)

    def extend(self, transitions):
        self.items.extend(transitions)

    def sample(self, count):
        return Transition(*zip(*random.choices(self.items, k=count)))

    def __len__(self):
        return len(self.items)


def to_device(batch):
    columns = []
    for column in batch:
        columns.append(torch.tensor(column, dtype=torch.float32).to(device))
    return columns


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU(),
        nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU(),
        nn.Linear(HIDDEN, outputs),
    )


class Learner:
    def __init__(self):
        self.actor = mlp(STATE, ACTION).to(device)
        self.critic = mlp(STATE + ACTION, 1).to(device)
        self.slow_critic = mlp(STATE + ACTION, 1).to(device).requires_grad_(False)
        self.slow_critic.load_state_dict(self.critic.state_dict())
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-4, fused=True)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)
        self.critic_loss = torch.compile(self._critic_loss)
        self.actor_loss = torch.compile(self._actor_loss)

    def _critic_loss(self, state, action, reward, following, done):
        with torch.no_grad():
            planned = torch.tanh(self.actor(following))
            future = self.slow_critic(torch.cat([following, planned], dim=-1)).squeeze(-1)
            goal = reward + GAMMA * (1.0 - done) * future
        value = self.critic(torch.cat([state, action], dim=-1)).squeeze(-1)
        return nn.functional.smooth_l1_loss(value, goal)

    def _actor_loss(self, state):
        action = torch.tanh(self.actor(state))
        return -self.critic(torch.cat([state, action], dim=-1)).mean()

    def update(self, batch):
        state, action, reward, following, done = to_device(batch)
        loss = self.critic_loss(state, action, reward, following, done)
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()

        gain = self.actor_loss(state)
        self.actor_opt.zero_grad()
        gain.backward()
        self.actor_opt.step()

        with torch.no_grad():
            slow, fast = list(self.slow_critic.parameters()), list(self.critic.parameters())
            torch._foreach_lerp_(slow, fast, TAU)
        return loss.detach()


def main():
    random.seed(21)
    torch.manual_seed(21)
    torch.set_float32_matmul_precision("high")
    yard = CraneYard(cranes=16, rng=np.random.default_rng(21))
    memory = ReplayMemory(capacity=20_000)
    while len(memory) < 8 * BATCH:
        memory.extend(yard.tick())

    learner = Learner()
    trace = []
    for update in range(UPDATES):
        if update == 20:
            torch.cuda.synchronize()
            began = time.perf_counter()
        memory.extend(yard.tick())
        trace.append(learner.update(memory.sample(BATCH)))
        if update % 300 == 299:
            print(f"update {update + 1:5d}: critic loss {torch.stack(trace).mean().item():.4f}")
            trace.clear()
    torch.cuda.synchronize()
    print(f"{1e3 * (time.perf_counter() - began) / (UPDATES - 20):.2f} ms per update")


if __name__ == "__main__":
    main()
