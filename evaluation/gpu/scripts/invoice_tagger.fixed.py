"""Token tagger for scanned invoices, trained from scratch in bf16."""
import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "1200"))
device = "cuda"
BATCH, TOKENS, DIM, HEADS, LAYERS, TAGS = 16, 256, 512, 8, 12, 32

torch.manual_seed(2)
torch.set_float32_matmul_precision("high")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.norm2 = nn.LayerNorm(DIM)
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.proj(a)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(128, DIM)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.out = nn.Linear(DIM, TAGS)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


model = Tagger().to(device=device, dtype=torch.bfloat16)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
net = torch.compile(model)
feats = [torch.randn(BATCH, TOKENS, 128, device=device, dtype=torch.bfloat16) for _ in range(4)]
tags = [torch.randint(0, TAGS, (BATCH * TOKENS,), device=device) for _ in range(4)]

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    logits = net(feats[step % 4])
    loss = F.cross_entropy(logits.view(-1, TAGS).float(), tags[step % 4])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = loss.detach()
