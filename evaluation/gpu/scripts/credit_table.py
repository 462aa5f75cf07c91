"""Credit default model on a wide table kept in numpy; mini-batches drawn at random from the table."""
import os
import time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)
rng = np.random.default_rng(14)
dev = "cuda"
ROWS, COLS, BATCH = 400_000, 600, 16384


class TabNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(COLS))
        self.shift = nn.Parameter(torch.zeros(COLS))
        self.l1, self.n1 = nn.Linear(COLS, 256), nn.LayerNorm(256)
        self.l2, self.n2 = nn.Linear(256, 128), nn.LayerNorm(128)
        self.out = nn.Linear(128, 1)

    def forward(self, x):
        x = torch.tanh(self.scale * x + self.shift)
        x = F.gelu(self.n1(self.l1(x)))
        x = F.gelu(self.n2(self.l2(x)))
        return self.out(x).squeeze(-1)


def main():
    torch.set_float32_matmul_precision("high")
    table = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    target = (table[:, :8].sum(1) > 1.0).astype(np.float32)
    net = TabNet().to(dev)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "1500"))):
        pick = rng.integers(0, ROWS, BATCH)
        x = torch.from_numpy(table[pick]).to(dev)
        y = torch.from_numpy(target[pick]).to(dev)
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(f"it {it} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
