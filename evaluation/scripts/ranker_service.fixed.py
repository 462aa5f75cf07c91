"""Serve a candidate ranker: batches of (user, items) requests come from a queue."""
import collections
import os
import time

import torch
from torch import nn

ITEMS = 96
DIM = 128


class Ranker(nn.Module):
    def __init__(self, n_items=20000, n_users=5000):
        super().__init__()
        self.items = nn.Embedding(n_items, DIM)
        self.users = nn.Embedding(n_users, DIM)
        self.cross = nn.ModuleList(nn.Linear(2 * DIM, 2 * DIM) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(2 * DIM) for _ in range(3))
        self.head = nn.Linear(2 * DIM, 1)

    def forward(self, user, items):
        u = self.users(user)[:, None, :].expand(-1, items.shape[1], -1)
        x0 = torch.cat([u, self.items(items)], dim=-1)
        x = x0
        for lin, norm in zip(self.cross, self.norms):
            x = norm(x0 * torch.sigmoid(lin(x)) * torch.tanh(x) + x)
        return self.head(nn.functional.gelu(x)).squeeze(-1)


class RequestQueue:
    def __init__(self, n, batch, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.n = n
        self.batch = batch

    def __iter__(self):
        for _ in range(self.n):
            yield (
                torch.randint(0, 5000, (self.batch,), generator=self.gen),
                torch.randint(0, 20000, (self.batch, ITEMS), generator=self.gen),
            )


class Service:
    def __init__(self, model, housekeeping=60):
        self.model = torch.compile(model)
        self.housekeeping = housekeeping
        self.served = 0
        self.recent = collections.deque(maxlen=200)

    def handle(self, user, items):
        scores = self.model(user, items)
        top = scores.topk(5, dim=-1)
        self.recent.append((user[0].item(), top.values[0, 0].item()))
        self.served += 1
        if self.served % self.housekeeping == 0:
            self.release_memory()
        return items.gather(1, top.indices)

    def release_memory(self):
        while len(self.recent) > 100:
            self.recent.popleft()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    service = Service(Ranker().eval())
    checksum = 0
    begin = None
    warm = steps // 4
    with torch.inference_mode():
        for k, (user, items) in enumerate(RequestQueue(steps, 12, seed=2)):
            if k == warm:
                begin = time.perf_counter()
            checksum += int(service.handle(user, items).sum())
    elapsed = time.perf_counter() - begin
    print(f"checksum {checksum}, kept {len(service.recent)}")
    print(f"{elapsed / (steps - warm) * 1e3:.2f} ms per request batch")


if __name__ == "__main__":
    main()
