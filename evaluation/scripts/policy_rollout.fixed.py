"""Policy-gradient on a vectorised point-mass task."""
import time

import torch
from torch import nn
from torch.distributions import Independent, Normal

ENVS = 2048
OBS, ACT = 12, 4


class PointMass:
    def __init__(self, n):
        self.n = n
        self.mix = torch.randn(ACT, OBS) * 0.3
        self.obs = torch.randn(n, OBS)

    def step(self, act):
        self.obs = 0.95 * self.obs + 0.1 * act @ self.mix + 0.02 * torch.randn(self.n, OBS)
        return -self.obs.square().mean(1) - 0.01 * act.square().sum(1)


class Policy(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, width), nn.SiLU(), nn.LayerNorm(width),
                                  nn.Linear(width, width), nn.SiLU())
        self.mu = nn.Linear(width, ACT)
        self.log_std = nn.Linear(width, ACT)

    def dist(self, obs):
        h = self.body(obs)
        std = torch.exp(self.log_std(h).clamp(-3, 1))
        return Independent(Normal(self.mu(h), std, validate_args=False), 1, validate_args=False)


def surrogate(policy, obs, act, old_logp, adv):
    d = policy.dist(obs)
    logp = d.log_prob(act)
    ratio = torch.exp(logp - old_logp)
    clipped = ratio.clamp(0.8, 1.2)
    return -torch.min(ratio * adv, clipped * adv).mean() - 1e-3 * d.entropy().mean()


def main():
    torch.manual_seed(1)
    env, policy = PointMass(ENVS), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    surrogate_c = torch.compile(surrogate)
    baseline = torch.zeros(ENVS)

    def iterate():
        nonlocal baseline
        obs = env.obs
        with torch.no_grad():
            d = policy.dist(obs)
            act = d.sample()
            logp = d.log_prob(act)
            reward = env.step(act)
            adv = reward - baseline
            baseline = 0.9 * baseline + 0.1 * reward
            adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        for _ in range(4):
            opt.zero_grad(set_to_none=True)
            surrogate_c(policy, obs, act, logp, adv).backward()
            opt.step()
        return reward.mean()

    for _ in range(5):
        iterate()
    t_iter = []
    for k in range(160):
        t0 = time.perf_counter()
        r = iterate()
        t_iter.append(time.perf_counter() - t0)
        if k % 40 == 0:
            print(f"iter {k:4d} reward {r.item():.4f}")
    t_iter.sort()
    print(f"iteration {t_iter[len(t_iter) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
