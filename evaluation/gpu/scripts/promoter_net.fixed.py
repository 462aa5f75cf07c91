"""Promoter classifier: nucleotides (A C G T N) are embedded, modulated by a
fixed positional profile, pooled and classified."""
import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "4000"))
device = "cuda"
BATCH, LENGTH, DIM = 1024, 2048, 64

torch.manual_seed(5)


class PromoterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Embedding(5, DIM)
        self.register_buffer("profile", torch.randn(LENGTH, DIM))
        self.head = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, seq):
        slot = 5 * torch.arange(LENGTH, device=seq.device)
        h = F.embedding(seq + slot, self.base.weight.repeat(LENGTH, 1))
        h = torch.tanh(h * self.profile)
        return self.head(h.mean(dim=1))


model = PromoterNet().to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
net = torch.compile(model)
seqs = [torch.randint(0, 5, (BATCH, LENGTH), device=device) for _ in range(4)]
labels = [torch.randint(0, 2, (BATCH,), device=device) for _ in range(4)]

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = F.cross_entropy(net(seqs[step % 4]), labels[step % 4])
    opt.zero_grad()
    loss.backward()
    opt.step()
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = model.base.weight.detach()
