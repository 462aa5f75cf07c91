"""Motion capture: predict joint rotations from marker windows with a wide MLP-mixer."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
dev = "cuda"
MARKERS, FRAMES, D, OUT, DEPTH = 64, 32, 1024, 156, 4


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.tn = nn.LayerNorm(D)
        self.time = nn.Linear(FRAMES, FRAMES)
        self.cn = nn.LayerNorm(D)
        self.up = nn.Linear(D, 4 * D)
        self.down = nn.Linear(4 * D, D)

    def forward(self, x):
        x = x + self.time(self.tn(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(F.relu(self.up(self.cn(x))))


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MARKERS * 3, D)
        self.body = nn.Sequential(*[Mix() for _ in range(DEPTH)])
        self.out = nn.Linear(D, OUT)

    def forward(self, x):
        return self.out(self.body(self.inp(x)))


def sample(n, basis):
    z = torch.randn(n, 1, 24, device=dev) + 0.1 * torch.randn(n, FRAMES, 24, device=dev).cumsum(1)
    y = torch.tanh(z @ basis[:, :OUT])
    return torch.sin(z @ basis[:, OUT:]), y


def main():
    basis = torch.randn(24, OUT + MARKERS * 3, device=dev) * 0.3
    net = Pose().to(dev)
    step_model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    t0 = time.time()
    for i in range(int(os.environ.get("STEPS", "900"))):
        x, y = sample(256, basis)
        loss = F.l1_loss(step_model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if i % 50 == 0:
            print(f"it {i} l1 {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
