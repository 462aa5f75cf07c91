"""Q-learning for elevator dispatch from logged transitions, with priorities."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "2500"))
LOGGED = 200_000
BATCH = 512
OBS = 96
ACTIONS = 16
DEV = "cuda"


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(OBS, 256)
        self.norms = nn.ModuleList([nn.LayerNorm(256) for _ in range(4)])
        self.lins = nn.ModuleList([nn.Linear(256, 256) for _ in range(4)])
        self.value = nn.Linear(256, 1)
        self.adv = nn.Linear(256, ACTIONS)

    def forward(self, obs):
        x = self.inp(obs)
        for norm, lin in zip(self.norms, self.lins):
            x = x + nn.functional.silu(lin(norm(x)))
        adv = self.adv(x)
        return self.value(x) + adv - adv.mean(-1, keepdim=True)


def main():
    torch.manual_seed(14)
    obs = torch.randn(LOGGED, OBS, device=DEV)
    act = torch.randint(0, ACTIONS, (LOGGED, 1), device=DEV)
    rew = torch.randn(LOGGED, device=DEV)
    priority = torch.ones(LOGGED, device=DEV)
    net, target = QNet().to(DEV), QNet().to(DEV).requires_grad_(False)
    target.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=1e-4, fused=True)

    @torch.compile
    def td_loss(o, a, r, o2):
        q = net(o).gather(1, a).squeeze(1)
        with torch.no_grad():
            goal = r + 0.97 * target(o2).amax(1)
        td = q - goal
        return nn.functional.smooth_l1_loss(q, goal), td.detach().abs()

    t0 = time.time()
    for step in range(STEPS):
        idx = torch.multinomial(priority, BATCH, replacement=True)
        loss, td = td_loss(obs[idx], act[idx], rew[idx], obs[(idx + 1) % LOGGED])
        opt.zero_grad()
        loss.backward()
        opt.step()
        priority[idx] = td + 0.01
        if step % 500 == 0:
            target.load_state_dict(net.state_dict())
            print(f"step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
