"""Re-rank candidate lists of a product catalogue against query embeddings."""
import math
import os
import time

import torch

device = "cuda"
STEPS = int(os.environ.get("STEPS", "8000"))
N_ITEMS = 4_000_000
DIM = 256
QUERIES = 256
CANDS = 768


class Catalog:
    """Item vectors and popularity priors, loaded once when the service starts."""

    def __init__(self, n, dim):
        gen = torch.Generator(device=device).manual_seed(11)
        self.vectors = torch.empty(n, dim, device=device).normal_(generator=gen)
        self.prior = torch.rand(n, device=device, generator=gen)

    def __len__(self):
        return self.vectors.shape[0]


@torch.compile(mode="reduce-overhead")
def rerank(query, cand, vectors, prior):
    items = vectors[cand]
    sims = (items * query.unsqueeze(1)).sum(-1) / math.sqrt(DIM)
    norm = items.square().sum(-1).add(1e-6).sqrt()
    score = sims / norm + 0.3 * torch.log1p(prior[cand])
    score = torch.sigmoid(4.0 * score)
    return torch.topk(score, 20, dim=-1)


def make_requests(n):
    reqs = []
    for i in range(n):
        q = torch.randn(QUERIES, DIM, device=device)
        c = torch.randint(0, N_ITEMS, (QUERIES, CANDS), device=device)
        reqs.append((q, c))
    return reqs


@torch.no_grad()
def main():
    torch.manual_seed(0)
    catalog = Catalog(N_ITEMS, DIM)
    requests = make_requests(16)
    hits = torch.zeros((), device=device)
    for q, c in requests[:4]:
        rerank(q, c, catalog.vectors, catalog.prior)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        q, c = requests[step % len(requests)]
        scores, _ = rerank(q, c, catalog.vectors, catalog.prior)
        hits += scores[:, 0].mean()
        if step % 1000 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"{step:6d} requests  mean top score {hits.item() / step:.4f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
