"""Frame-by-frame latent decoder of a small audio codec."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm

torch.set_num_threads(1)
torch.manual_seed(8)

STEPS = int(os.environ.get("STEPS", "70000"))
LATENT, HIDDEN, FRAME = 128, 384, 240


class ResBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up = weight_norm(nn.Linear(dim, dim))
        self.down = weight_norm(nn.Linear(dim, dim))

    def forward(self, x):
        return x + self.down(F.leaky_relu(self.up(x), 0.1))


class FrameDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = weight_norm(nn.Linear(LATENT, HIDDEN))
        self.blocks = nn.ModuleList(ResBlock(HIDDEN) for _ in range(6))
        self.out = weight_norm(nn.Linear(HIDDEN, FRAME))

    def forward(self, z):
        h = self.inp(z)
        for block in self.blocks:
            h = block(h)
        return torch.tanh(self.out(F.leaky_relu(h, 0.1)))


decoder = FrameDecoder().eval()
decode = torch.compile(decoder)
latents = torch.randn(32, 2, LATENT)
level = 0.0

with torch.inference_mode():
    for step in range(STEPS):
        frame = decode(latents[step % 32])
        level = 0.9 * level + 0.1 * frame.abs().mean()

print(f"level {float(level):.6f}")
