"""Stochastic variational inference for a topic model over support tickets."""
import os
import time

import torch

TOPICS = 12
VOCAB = 512
BATCH = 24


def dirichlet_expectation(conc):
    return torch.digamma(conc) - torch.digamma(conc.sum(-1, keepdim=True))


def responsibilities(elog_theta, elog_beta):
    logits = elog_theta.unsqueeze(-1) + elog_beta.unsqueeze(0)
    return torch.softmax(logits, dim=1)


def local_update(counts, elog_beta, elog_theta, alpha):
    phi = responsibilities(elog_theta, elog_beta)
    weighted = phi * counts.unsqueeze(1)
    new_gamma = alpha + weighted.sum(-1)
    sstats = weighted.sum(0)
    return new_gamma, sstats


def corpus(gen, docs):
    topics = torch.distributions.Dirichlet(torch.full((VOCAB,), 0.05)).sample((TOPICS,))
    mix = torch.distributions.Dirichlet(torch.full((TOPICS,), 0.2)).sample((docs,))
    probs = mix @ topics
    words = torch.multinomial(probs, 160, replacement=True, generator=gen)
    counts = torch.zeros(docs, VOCAB)
    counts.scatter_add_(1, words, torch.ones_like(words, dtype=torch.float32))
    return counts


def held_out_bound(counts, lam):
    beta = lam / lam.sum(-1, keepdim=True)
    theta = torch.full((counts.shape[0], TOPICS), 1.0 / TOPICS)
    for _ in range(20):
        mix = theta @ beta
        theta = theta * ((counts / mix) @ beta.T)
        theta = theta / theta.sum(-1, keepdim=True)
    return float((counts * (theta @ beta).log()).sum() / counts.sum())


@torch.no_grad()
def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(11)
    docs = corpus(gen, 400)
    train, held = docs[:360], docs[360:]

    local_step = torch.compile(local_update)
    lam = 0.5 + torch.rand(TOPICS, VOCAB, generator=gen)
    eta, alpha = 0.05, 0.2
    scale = train.shape[0] / BATCH

    times = []
    for step in range(steps):
        rows = torch.randint(0, train.shape[0], (BATCH,), generator=gen)
        counts = train[rows]
        gamma = torch.full((BATCH, TOPICS), alpha + counts.sum().item() / (BATCH * TOPICS))
        rho = (step + 16.0) ** -0.6
        t0 = time.perf_counter()
        elog_beta = dirichlet_expectation(lam)
        for _ in range(2):
            gamma, sstats = local_step(counts, elog_beta, dirichlet_expectation(gamma), alpha)
        lam = (1.0 - rho) * lam + rho * (eta + scale * sstats)
        times.append(time.perf_counter() - t0)

    tail = sorted(times[len(times) // 2:])
    print(f"held-out log-lik per token {held_out_bound(held, lam):.4f}")
    print(f"median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()
