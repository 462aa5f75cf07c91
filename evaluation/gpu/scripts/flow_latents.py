import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "1500"))
torch.manual_seed(18)
torch.set_float32_matmul_precision("high")
dev = "cuda"

B, DIM, HID, BLOCKS, COND = 16384, 1024, 2048, 6, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mod = nn.Linear(COND, 3 * DIM)
        self.up = nn.Linear(DIM, HID)
        self.down = nn.Linear(HID, DIM)

    def forward(self, x, c):
        shift, scale, gate = self.mod(c).chunk(3, -1)
        h = F.layer_norm(x, (DIM,)) * (1 + scale) + shift
        return x + gate * self.down(F.gelu(self.up(h), approximate="tanh"))


class VelocityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 6, COND // 2)))
        self.embed = nn.Linear(COND, COND)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x, t):
        ang = t.float() * self.freqs.float()
        c = F.silu(self.embed(torch.cat([ang.sin(), ang.cos()], -1).to(x.dtype)))
        for b in self.blocks:
            x = b(x, c)
        return x


net = VelocityNet().to(dev, torch.bfloat16)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
latents = torch.randn(4, B, DIM, device=dev, dtype=torch.bfloat16)


@torch.compile
def flow_loss(x1):
    x0 = torch.randn_like(x1)
    t = torch.rand(x1.shape[0], 1, device=x1.device)
    xt = (torch.lerp(x0.float(), x1.float(), t)).to(x1.dtype)
    v = net(xt, t)
    return (v.float() - (x1 - x0).float()).square().mean()


def train_step(i):
    loss = flow_loss(latents[i % 4])
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
