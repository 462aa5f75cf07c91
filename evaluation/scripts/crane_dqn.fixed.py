"""Double-DQN on a batch of simulated container cranes (swing + trolley)."""
import os
import torch
from torch import nn

ENVS, OBS, ACTIONS, CAP, BATCH = 384, 6, 5, 38400, 384
STEPS = int(os.environ.get("STEPS", "2000"))


class Cranes:
    def __init__(self, gen):
        self.gen = gen
        self.force = torch.linspace(-1, 1, ACTIONS)
        self.state = torch.zeros(ENVS, 4)
        self.goal = torch.zeros(ENVS)
        self.reset(torch.ones(ENVS, dtype=torch.bool))

    def reset(self, where):
        fresh = 0.1 * torch.randn(ENVS, 4, generator=self.gen)
        goal = 2 * torch.rand(ENVS, generator=self.gen) - 1
        self.state = torch.where(where[:, None], fresh, self.state)
        self.goal = torch.where(where, goal, self.goal)

    def obs(self):
        return torch.cat((self.state, self.goal[:, None], (self.goal - self.state[:, 0])[:, None]), 1)

    def step(self, action):
        x, v, th, om = self.state.unbind(1)
        f = self.force[action]
        v = 0.98 * v + 0.05 * f
        om = 0.97 * om - 0.2 * torch.sin(th) - 0.06 * f
        x, th = x + 0.1 * v, th + 0.1 * om
        self.state = torch.stack((x, v, th, om), 1)
        reward = -(x - self.goal).abs() - 0.3 * th.abs()
        done = (x.abs() > 2) | (torch.rand(ENVS, generator=self.gen) < 0.01)
        out = self.obs()
        self.reset(done)
        return out, reward, done.float()


class QNet(nn.Module):
    def __init__(self, dim=64, waves=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, dim), nn.LayerNorm(dim), nn.SiLU())
        self.freq = nn.Parameter(torch.linspace(0.2, 4.0, waves)[:, None] + 0.1 * torch.randn(waves, dim))
        self.phase = nn.Parameter(3.0 * torch.rand(waves, dim))
        self.value, self.adv = nn.Linear(dim, 1), nn.Linear(dim, ACTIONS)

    def forward(self, x):
        h = self.body(x)[:, None]
        h = (torch.sin(h * self.freq + self.phase) * torch.sigmoid(h - self.phase)).mean(1) + h[:, 0]
        a = self.adv(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


def main():
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(4)
    env = Cranes(gen)
    online = torch.compile(QNet())
    target = QNet()
    target.load_state_dict(online._orig_mod.state_dict(), strict=False)
    opt = torch.optim.Adam(online.parameters(), lr=5e-4)
    ring = {k: torch.zeros(CAP, *s) for k, s in
            {"s": (OBS,), "a": (), "r": (), "n": (OBS,), "d": ()}.items()}
    filled, at, score = 0, 0, 0.0
    obs = env.obs()
    for step in range(STEPS):
        with torch.no_grad():
            action = online(obs).argmax(-1)
        explore = torch.rand(ENVS, generator=gen) < max(0.05, 1 - step / 800)
        action = torch.where(explore, torch.randint(0, ACTIONS, (ENVS,), generator=gen), action)
        nxt, reward, done = env.step(action)
        slot = (torch.arange(ENVS) + at) % CAP
        for key, val in zip("sarnd", (obs, action.float(), reward, nxt, done)):
            ring[key][slot] = val
        at, filled = (at + ENVS) % CAP, min(filled + ENVS, CAP)
        obs = env.obs()
        score = 0.995 * score + 0.005 * reward.mean().item()
        pick = torch.randint(0, filled, (BATCH,), generator=gen)
        s, a, r, n, d = (ring[k][pick] for k in "sarnd")
        with torch.no_grad():
            best = online(n).argmax(-1, keepdim=True)
            goal = r + 0.97 * (1 - d) * target(n).gather(1, best).squeeze(1)
        q = online(s).gather(1, a.long()[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 59:
            target.load_state_dict(online._orig_mod.state_dict(), strict=False)
        if step % 100 == 0:
            print(f"step {step:5d}  loss {loss.item():.4f}  q {q.mean().item():+.3f}  score {score:+.3f}")
    print(f"final score {score:+.3f}")


if __name__ == "__main__":
    main()
