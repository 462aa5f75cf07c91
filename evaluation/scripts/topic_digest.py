"""Online variational LDA over a stream of newspaper articles.

Follows the usual scheme: for each mini-batch of documents run a few E-step
iterations for the document-topic weights, then blend the sufficient statistics
into the topic-word parameters with a decaying learning rate.
"""
import os

import torch

VOCAB = 900
TOPICS = 12
DOCS = 48
TOKENS = 160
ALPHA, ETA = 0.1, 0.01
TAU, KAPPA = 64.0, 0.7


def expected_log(params: torch.Tensor) -> torch.Tensor:
    """E[log p] for Dirichlet rows."""
    return torch.digamma(params) - torch.digamma(params.sum(-1, keepdim=True))


def e_step(lam_t, words, counts, gamma):
    """lam_t: vocab x topics, words/counts: docs x tokens, gamma: docs x topics."""
    word_weight = torch.exp(torch.digamma(lam_t) - torch.digamma(lam_t.sum(0)))[words]
    for _ in range(2):
        theta = torch.exp(expected_log(gamma))
        norm = torch.einsum("dnk,dk->dn", word_weight, theta) + 1e-9
        gamma = ALPHA + theta * torch.einsum("dn,dnk->dk", counts / norm, word_weight)
    theta = torch.exp(expected_log(gamma))
    norm = torch.einsum("dnk,dk->dn", word_weight, theta) + 1e-9
    phi = word_weight * theta[:, None, :] * (counts / norm)[..., None]
    score = (counts * torch.log(norm)).sum() / counts.sum()
    return gamma, phi, score


def m_step(lam_t, words, phi, rate, corpus_scale):
    stats = torch.zeros_like(lam_t)
    stats.index_add_(0, words.reshape(-1), phi.reshape(-1, TOPICS))
    return (1 - rate) * lam_t + rate * (ETA + corpus_scale * stats)


class ArticleStream:
    """Articles drawn from a hidden set of topics with Zipf-like word use."""

    def __init__(self, seed: int = 21):
        self.gen = torch.Generator().manual_seed(seed)
        rank = 1.0 / torch.arange(1, VOCAB + 1, dtype=torch.float32)
        rows = [rank[torch.randperm(VOCAB, generator=self.gen)] for _ in range(TOPICS)]
        self.topics = torch.stack(rows)

    def batch(self):
        pick = torch.randint(0, TOPICS, (DOCS,), generator=self.gen)
        words = torch.multinomial(self.topics[pick], TOKENS, generator=self.gen)
        counts = torch.randint(1, 4, (DOCS, TOKENS), generator=self.gen).float()
        return words, counts


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    stream = ArticleStream()
    batches = [stream.batch() for _ in range(24)]
    lam_t = torch.empty(VOCAB, TOPICS).exponential_(1.0) + 0.5
    infer = torch.compile(e_step)

    trace = []
    with torch.no_grad():
        for i in range(steps):
            words, counts = batches[i % len(batches)]
            gamma = torch.ones(DOCS, TOPICS)
            gamma, phi, score = infer(lam_t, words, counts, gamma)
            lam_t = m_step(lam_t, words, phi, (TAU + i) ** -KAPPA, 50.0)
            trace.append(score)

    trace = torch.stack(trace)
    top = lam_t.topk(3, dim=0).indices[:, 0].tolist()
    print(f"batches {steps}  per-word bound {float(trace[0]):.3f} -> {float(trace[-1]):.3f}  topic 0: {top}")


if __name__ == "__main__":
    main()
