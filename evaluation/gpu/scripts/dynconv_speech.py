import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
torch.manual_seed(13)
torch.set_float32_matmul_precision("high")
dev = "cuda"

B, T, C, K, LAYERS = 16, 2048, 512, 15, 4


class DynamicConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(C)
        self.proj = nn.Linear(C, C)
        self.kernel = nn.Linear(C, K)

    def forward(self, x):
        h = self.proj(self.norm(x))
        w = torch.softmax(self.kernel(h), -1)
        h = F.pad(h, (0, 0, K // 2, K // 2))
        y = (h.unfold(1, K, 1) * w.unsqueeze(2)).sum(-1)
        return x + F.gelu(y)


class SpeechEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[DynamicConv() for _ in range(LAYERS)])
        self.head = nn.Linear(C, 64)

    def forward(self, x):
        return self.head(self.blocks(x))


enc = SpeechEncoder().to(dev)
run = torch.compile(enc)
opt = torch.optim.AdamW(enc.parameters(), lr=1e-4, fused=True)
feats = torch.randn(4, B, T, C, device=dev)
labels = torch.randint(0, 64, (4, B * T), device=dev)


def train_step(i):
    logits = run(feats[i % 4])
    loss = F.cross_entropy(logits.view(-1, 64), labels[i % 4])
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
