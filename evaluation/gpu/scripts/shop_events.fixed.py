# Purchase propensity from click streams: item history + kind of each event.
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")

BATCH = 65536
EVENTS = 48
N_KINDS = 6          # view, cart, wish, share, search, buy
N_SHOPS = 100_000
DIM = 32
SECONDS = float(os.environ.get("SECONDS", "25"))


class Propensity(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = nn.Embedding(N_KINDS, DIM)
        self.shop = nn.Embedding(N_SHOPS, DIM)
        self.decay = nn.Parameter(torch.zeros(EVENTS))
        self.mlp = nn.Sequential(
            nn.Linear(2 * DIM + 8, 256), nn.ReLU(),
            nn.Linear(256, 128), nn.ReLU(),
            nn.Linear(128, 1),
        )

    def forward(self, kinds, shop, dense):
        w = torch.softmax(self.decay, dim=0)
        one_hot = (kinds[:, :, None] == torch.arange(N_KINDS, device=kinds.device)).float()
        hist = (one_hot * w[None, :, None]).sum(dim=1) @ self.kind.weight
        x = torch.cat([hist, self.shop(shop), dense], dim=1)
        return self.mlp(x).squeeze(-1)


class Stream:
    """Cycles over batches that already live on the card."""

    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        p = np.array([0.78, 0.08, 0.05, 0.02, 0.05, 0.02])
        self.items = []
        for _ in range(n):
            kinds = rng.choice(N_KINDS, size=(BATCH, EVENTS), p=p)
            shop = rng.integers(0, N_SHOPS, size=BATCH)
            dense = rng.standard_normal((BATCH, 8), dtype=np.float32)
            label = ((kinds == 1).mean(1) > 0.08).astype(np.float32)
            self.items.append(tuple(torch.from_numpy(a).to(device) for a in (kinds, shop, dense, label)))
        self.k = 0

    def __next__(self):
        b = self.items[self.k % len(self.items)]
        self.k += 1
        return b

    def __iter__(self):
        return self


def main():
    torch.manual_seed(3)
    model = Propensity().to(device)
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    stream = Stream(4)

    def train_step(batch):
        kinds, shop, dense, label = batch
        loss = F.binary_cross_entropy_with_logits(net(kinds, shop, dense), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    for _ in range(5):
        loss = train_step(next(stream))
    print("warm loss", loss.item())

    n, t0 = 0, time.time()
    while time.time() - t0 < SECONDS:
        running = torch.zeros((), device=device)
        for _ in range(100):
            running += train_step(next(stream))
        n += 100
        print(f"step {n}  loss {running.item() / 100:.4f}  {(time.time() - t0) / n * 1e3:.2f} ms/step")


if __name__ == "__main__":
    main()
