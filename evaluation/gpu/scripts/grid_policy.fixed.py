"""Energy-storage agent: roll-outs of a recurrent policy on 64 simulated sites, one decision per call."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(10)
dev = "cuda"
SITES, OBS, D, ACT = 64, 20, 128, 5


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.ih, self.hh = nn.Linear(D, 3 * D), nn.Linear(D, 3 * D)

    def forward(self, x, h):
        r, z, n = self.ih(self.norm(x)).chunk(3, -1)
        hr, hz, hn = self.hh(h).chunk(3, -1)
        z = torch.sigmoid(z + hz)
        n = torch.tanh(n + torch.sigmoid(r + hr) * hn)
        return (1 - z) * n + z * h


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(OBS, D)
        self.cells = nn.ModuleList(Cell() for _ in range(12))
        self.pi, self.v = nn.Linear(D, ACT), nn.Linear(D, 1)

    def forward(self, obs, hidden):
        x = torch.tanh(self.inp(obs))
        new = []
        for c, h in zip(self.cells, hidden.unbind(0)):
            h = c(x, h)
            x = x + h
            new.append(h)
        return self.pi(x), self.v(x).squeeze(-1), torch.stack(new)


@torch.no_grad()
def main():
    policy = Policy().to(dev).eval()
    act = torch.compile(policy, mode="reduce-overhead")
    w = torch.randn(ACT, OBS, device=dev) * 0.1
    obs = torch.randn(SITES, OBS, device=dev)
    hidden = torch.zeros(12, SITES, D, device=dev)
    value = torch.zeros((), device=dev)
    t0 = time.time()
    for step in range(int(os.environ.get("STEPS", "50000"))):
        logits, v, hidden = act(obs, hidden)
        hidden = hidden.clone()
        choice = logits.softmax(-1)
        obs = 0.9 * obs + choice @ w
        value += v.mean()
        if step % 2500 == 0:
            print(f"step {step} value {value.item() / (step + 1):+.5f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
