"""Mean-field E-step for a small topic model over streaming word-count batches."""
import os
import torch

TOPICS, VOCAB, DOCS = 24, 900, 16
STEPS = int(os.environ.get("STEPS", "500"))


def make_corpus(gen, n_docs):
    theta = torch.distributions.Dirichlet(torch.full((TOPICS,), 0.3)).sample((n_docs,))
    beta = torch.softmax(2.0 * torch.randn(TOPICS, VOCAB, generator=gen), -1)
    return torch.poisson(theta @ beta * 300.0, generator=gen)


class TopicModel:
    def __init__(self, alpha=0.1, eta=0.05, seed=3):
        g = torch.Generator().manual_seed(seed)
        self.alpha, self.eta = alpha, eta
        self.lam = torch.rand(TOPICS, VOCAB, generator=g) + 0.5

    def m_step(self, stats, rho):
        self.lam = (1 - rho) * self.lam + rho * (self.eta + 50.0 * stats)


def expected_log(weights):
    return torch.digamma(weights) - torch.digamma(weights.sum(-1, keepdim=True))


@torch.compile
def e_step(counts, gamma, lam, alpha: float):
    log_theta, log_beta = expected_log(gamma), expected_log(lam)
    phi = torch.softmax(log_theta[:, :, None] + log_beta[None], dim=1)
    weighted = phi * counts[:, None, :]
    new_gamma = alpha + weighted.sum(-1)
    change = (new_gamma - gamma).abs().mean(-1)
    return new_gamma, weighted.sum(0), change


def main():
    torch.manual_seed(11)
    gen = torch.Generator().manual_seed(1)
    corpus = make_corpus(gen, 320)
    model = TopicModel()
    for step in range(STEPS):
        idx = torch.randint(0, corpus.shape[0], (DOCS,), generator=gen)
        counts = corpus[idx]
        gamma = torch.ones(DOCS, TOPICS)
        for _ in range(6):
            gamma, stats, change = e_step(counts, gamma, model.lam, model.alpha)
        model.m_step(stats / DOCS, rho=(step + 8.0) ** -0.6)
        if step % 25 == 0:
            share = gamma / gamma.sum(-1, keepdim=True)
            entropy = -(share * share.log()).sum(-1).mean()
            print(f"step {step:4d}  change {change.mean():.4f}  topic entropy {entropy:.3f}")
    top = model.lam.topk(5, dim=-1).indices[:3]
    print("top words", top.tolist())


if __name__ == "__main__":
    with torch.no_grad():
        main()
