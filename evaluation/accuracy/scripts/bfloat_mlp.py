"""An MLP trained under autocast in bfloat16."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 16))
compiled = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(1000):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = compiled(torch.randn(64, 64))
    nn.functional.cross_entropy(logits.float(), torch.randint(16, (64,))).backward()
    optimizer.step()
