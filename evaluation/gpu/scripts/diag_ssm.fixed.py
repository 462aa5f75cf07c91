import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "2500"))
torch.manual_seed(14)
torch.set_float32_matmul_precision("high")
dev = "cuda"

B, H, N, L, LAYERS = 2, 256, 32, 4096, 4


class DiagSSM(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_dt = nn.Parameter(torch.rand(H, 1) * 4.0 - 7.0)
        self.log_decay = nn.Parameter(torch.log(0.5 * torch.ones(H, N)))
        self.freq = nn.Parameter(torch.pi * torch.arange(N).float().repeat(H, 1))
        self.c_re = nn.Parameter(torch.randn(H, N) * 0.5)
        self.c_im = nn.Parameter(torch.randn(H, N) * 0.5)
        self.mix = nn.Linear(H, H)
        self.norm = nn.LayerNorm(H)

    def impulse(self, pos):
        dt = torch.exp(self.log_dt)
        decay = (-torch.exp(self.log_decay) * dt).unsqueeze(-1) * pos
        phase = (self.freq * dt).unsqueeze(-1) * pos
        c_re = (self.c_re * dt).unsqueeze(-1)
        c_im = (self.c_im * dt).unsqueeze(-1)
        return 2 * (torch.exp(decay) * (c_re * torch.cos(phase) - c_im * torch.sin(phase))).sum(1)

    def forward(self, u, pos):
        k = self.impulse(pos)
        z = self.norm(u).transpose(1, 2)
        zf = torch.fft.rfft(z, n=2 * L)
        kf = torch.fft.rfft(k, n=2 * L)
        y = torch.fft.irfft(zf * kf, n=2 * L)[..., :L]
        return u + self.mix(F.gelu(y.transpose(1, 2)))


class SequenceModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(DiagSSM() for _ in range(LAYERS))
        self.register_buffer("pos", torch.arange(L).float())

    def forward(self, u):
        for layer in self.layers:
            u = layer(u, self.pos)
        return u


net = SequenceModel().to(dev)
run = torch.compile(net)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
series = torch.randn(4, B, L, H, device=dev)


def train_step(i):
    u = series[i % 4]
    loss = F.mse_loss(run(u)[:, :-1], u[:, 1:])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss


half = STEPS // 2
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = train_step(step)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1000 / (STEPS - half)
print(f"ms per step {x:.4f}")
print("check", float(loss))
