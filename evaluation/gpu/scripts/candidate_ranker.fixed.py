"""Second-stage ranker of a shop's recommender: one request batch in, best items out."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
ITEMS = 5_000 if SMALL else 8_000_000
DIM = 128
USERS, CANDS, HIST = 64, 200, 30
torch.set_float32_matmul_precision("high")


class UserTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2 * DIM, 512)
        self.fc2 = nn.Linear(512, 512)
        self.fc3 = nn.Linear(512, DIM)
        self.norm = nn.LayerNorm(512)

    def forward(self, hist):
        pooled = torch.cat([hist.mean(1), hist.amax(1)], -1)
        h = F.gelu(self.fc1(pooled))
        h = self.norm(h + F.gelu(self.fc2(h)))
        return F.normalize(self.fc3(h), dim=-1)


class Ranker:
    def __init__(self, catalogue, popularity):
        self.tower = UserTower().to(device).eval()
        self.catalogue = catalogue
        self.popularity = popularity
        torch._dynamo.mark_static_address(self.catalogue)
        torch._dynamo.mark_static_address(self.popularity)
        self.rank = torch.compile(self._rank, mode="reduce-overhead")

    def _rank(self, history, candidates):
        user = self.tower(self.catalogue[history])
        items = F.normalize(self.catalogue[candidates], dim=-1)
        score = (items * user[:, None]).sum(-1) * 8.0
        score = score + 0.1 * torch.log1p(self.popularity[candidates])
        best, where = score.topk(10, dim=-1)
        return best, candidates.gather(1, where)


def load_catalogue():
    gen = torch.Generator(device=device).manual_seed(3)
    table = torch.randn(ITEMS, DIM, device=device, generator=gen)
    popularity = torch.rand(ITEMS, device=device, generator=gen).mul_(100)
    return table, popularity


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    catalogue, popularity = load_catalogue()
    ranker = Ranker(catalogue, popularity)
    requests = [(torch.randint(ITEMS, (USERS, HIST), device=device),
                 torch.randint(ITEMS, (USERS, CANDS), device=device)) for _ in range(32)]
    served = torch.zeros((), device=device)
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start = clock()
        history, candidates = requests[step % 32]
        best, items = ranker.rank(history, candidates)
        served += best.mean()
    elapsed = clock() - start
    print(f"mean top-10 score {served.item() / STEPS:.4f}")
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
