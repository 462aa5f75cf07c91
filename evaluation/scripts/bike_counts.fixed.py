"""Soft clustering of bicycle-counter stations by hourly demand: EM for a mixture of
negative binomials over count vectors, with damped mini-batch updates."""
import os
import statistics
import time

import torch

STATIONS = 384     # mini-batch of station-days
HOURS = 24
CLUSTERS = 40


def log_choose(counts):
    return torch.lgamma(counts + 4.0) - torch.lgamma(counts + 1.0)


def log_nb(counts, const, mean, shape):
    """Negative binomial log-pmf, counts (N, 1, H), mean and shape (1, K, H)."""
    p = mean / (mean + shape)
    return (
        const
        + counts * torch.log(p)
        + shape * torch.log1p(-p)
    )


@torch.compile
def em_step(counts, const, mean, weight, shape, rate):
    x = counts.unsqueeze(1)
    score = log_nb(x, const.unsqueeze(1), mean.unsqueeze(0), shape).sum(-1) + weight.log()
    evidence = torch.logsumexp(score, dim=1, keepdim=True)
    resp = torch.exp(score - evidence)
    mass = resp.sum(0)
    target = (resp.T @ counts) / (mass.unsqueeze(1) + 1e-3)
    blend = rate * (mass / (mass + 0.5)).unsqueeze(1)
    mean = torch.clamp((1 - blend) * mean + blend * target, min=0.05)
    weight = (1 - rate) * weight + rate * (mass + 0.1) / (mass + 0.1).sum()
    return mean, weight, evidence.mean()


def daily_profiles(gen):
    hour = torch.arange(HOURS, dtype=torch.float32)
    profiles = []
    for _ in range(CLUSTERS):
        a, b = (torch.rand(2, generator=gen) * 6).tolist()
        morning = torch.exp(-0.5 * ((hour - 6 - a) / 1.5) ** 2)
        evening = torch.exp(-0.5 * ((hour - 14 - b) / 2.5) ** 2)
        scale = 10 + 60 * float(torch.rand((), generator=gen))
        profiles.append(1.0 + scale * (morning + evening))
    return torch.stack(profiles)


def draw_batch(profiles, gen):
    which = torch.randint(0, CLUSTERS, (STATIONS,), generator=gen)
    return torch.poisson(profiles[which], generator=gen)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(42)

    profiles = daily_profiles(gen)
    mean = profiles.mean(0) * (0.5 + torch.rand(CLUSTERS, HOURS, generator=gen))
    weight = torch.full((CLUSTERS,), 1.0 / CLUSTERS)
    shape = torch.full((1, 1, 1), 4.0)
    rate = torch.tensor(0.1)

    history, times = [], []
    with torch.no_grad():
        for step in range(steps):
            counts = draw_batch(profiles, gen)
            t0 = time.perf_counter()
            const = log_choose(counts)
            mean, weight, ll = em_step(counts, const, mean, weight, shape, rate)
            if step % 40 == 39:
                rate = rate * 0.8
            history.append(ll)
            times.append(time.perf_counter() - t0)

    print("log-likelihood:", " ".join(f"{float(v):.2f}" for v in history[::40]))
    print(f"largest cluster {weight.max().item():.3f}, "
          f"{1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()
