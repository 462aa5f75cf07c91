"""Q-learning of chiller set-points on a toy building model, off-policy with a replay store."""
import os
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

Transition = namedtuple("Transition", "obs action reward next_obs done")

SENSORS = 72
ACTIONS = 9
BATCH = 256


class Building:
    """Linear thermal network with weather forcing; the action moves the supply temperature."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.mix = self.rng.normal(0, 1 / np.sqrt(SENSORS), (SENSORS, SENSORS)).astype(np.float32)
        self.gain = self.rng.normal(0, 0.1, SENSORS).astype(np.float32)
        self.reset()

    def reset(self):
        self.state = self.rng.normal(0, 1, SENSORS).astype(np.float32)
        self.age = 0
        return self.state

    def step(self, action):
        push = (action - ACTIONS // 2) * self.gain
        noise = self.rng.normal(0, 0.05, SENSORS).astype(np.float32)
        self.state = np.tanh(0.9 * self.mix @ self.state + push + noise).astype(np.float32)
        self.age += 1
        reward = -float(np.abs(self.state[:8]).mean()) - 0.01 * abs(action - ACTIONS // 2)
        return self.state, reward, self.age >= 200


class ReplayStore:
    def __init__(self, capacity, seed):
        self.items = deque(maxlen=capacity)
        self.picker = random.Random(seed)

    def push(self, *args):
        self.items.append(Transition(*args))

    def sample(self, n):
        batch = Transition(*zip(*self.picker.sample(self.items, n)))
        obs = torch.from_numpy(np.stack(batch.obs))
        next_obs = torch.from_numpy(np.stack(batch.next_obs))
        action = torch.tensor(batch.action)
        reward = torch.tensor(batch.reward)
        done = torch.tensor(batch.done, dtype=torch.float32)
        return obs, action, reward, next_obs, done


class Dueling(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(SENSORS, width), nn.LayerNorm(width), nn.SiLU(),
                                   nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU())
        self.value = nn.Linear(width, 1)
        self.adv = nn.Linear(width, ACTIONS)

    def forward(self, x):
        h = self.trunk(x)
        a = self.adv(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


def td_loss(online, target, obs, action, reward, next_obs, done, gamma=0.97):
    with torch.no_grad():
        pick = online(next_obs).argmax(-1, keepdim=True)
        boot = target(next_obs).gather(-1, pick).squeeze(-1)
        goal = reward + gamma * (1.0 - done) * boot
    q = online(obs).gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return F.smooth_l1_loss(q, goal)


def main(updates=int(os.environ.get("STEPS", "4000")), warm=4000, seed=3):
    torch.manual_seed(seed)
    np.random.seed(seed)
    env, store = Building(seed), ReplayStore(20_000, seed)
    online, target = Dueling(), Dueling()
    target.load_state_dict(online.state_dict())
    opt = torch.optim.AdamW(online.parameters(), lr=1e-3, fused=True)
    loss_fn = torch.compile(td_loss)

    obs = env.reset()
    for _ in range(warm):
        act = np.random.randint(ACTIONS)
        nxt, rew, done = env.step(act)
        store.push(obs, act, rew, nxt, done)
        obs = env.reset() if done else nxt

    def update():
        loss = loss_fn(online, target, *store.sample(BATCH))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    for _ in range(5):
        update()
    t0, trail = time.perf_counter(), []
    for it in range(updates):
        trail.append(update())
        if it % 100 == 0:
            target.load_state_dict(online.state_dict())
        if (it + 1) % 500 == 0:
            print(f"update {it + 1:5d}  td {torch.stack(trail[-500:]).mean().item():.5f}")
    print(f"{(time.perf_counter() - t0) / updates * 1e3:.2f} ms/update")


if __name__ == "__main__":
    main()
