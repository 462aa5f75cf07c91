"""Propagate topic labels backwards along citations (source -> cited paper)."""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N_PAPERS = 2_000 if SMALL else 200_000
N_LINKS = 20_000 if SMALL else 2_000_000
N_TOPICS = 32
HOPS = 2


def sync():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def citation_matrix(gen):
    src = torch.randint(0, N_PAPERS, (N_LINKS,), generator=gen)
    dst = (torch.rand(N_LINKS, generator=gen) ** 2 * N_PAPERS).long()
    out_degree = torch.bincount(src, minlength=N_PAPERS).clamp(min=1)
    weight = 1.0 / out_degree[src].float()
    adj = torch.sparse_coo_tensor(
        torch.stack([src, dst]), weight, (N_PAPERS, N_PAPERS), device=DEVICE
    )
    return adj.coalesce()


def seed_labels(gen, n_batches):
    """Each batch marks one paper in fifty with a known topic."""
    batches = []
    for _ in range(n_batches):
        topic = torch.randint(0, N_TOPICS, (N_PAPERS,), generator=gen)
        known = torch.rand(N_PAPERS, 1, generator=gen) < 0.02
        onehot = torch.nn.functional.one_hot(topic, N_TOPICS).float()
        batches.append((onehot * known).to(DEVICE))
    return batches


@torch.compile
def blend(spread, seeds, restart):
    return (1.0 - restart) * spread + restart * seeds


def diffuse(adj, seeds, restart):
    state = seeds
    for _ in range(HOPS):
        spread = torch.sparse.mm(adj.t(), state)
        state = blend(spread, seeds, restart)
    return state


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(8)
    adj = citation_matrix(gen)
    batches = seed_labels(gen, 4)
    mass = torch.zeros((), device=DEVICE)

    half = STEPS // 2
    start = None
    with torch.no_grad():
        for i in range(STEPS):
            if i == half:
                sync()
                start = time.perf_counter()
            state = diffuse(adj, batches[i % len(batches)], 0.15)
            mass += state.sum()
    sync()
    elapsed = time.perf_counter() - start
    print(f"label mass per batch {mass.item() / STEPS:.3f}")
    print(f"step_ms={elapsed * 1e3 / max(1, STEPS - half):.3f}")


if __name__ == "__main__":
    main()
