"""Leave-one-region-out Gaussian-process scores for a bank of soil maps."""
import os
import time

import torch

torch.manual_seed(81)

MAPS = 6
SITES = 260
STEPS = int(os.environ.get("STEPS", "4500"))
LOG = 200


@torch.compile
def evidence(cov, obs, noise):
    k = cov + noise * torch.eye(SITES)
    chol = torch.linalg.cholesky(k)
    alpha = torch.cholesky_solve(obs[..., None], chol).squeeze(-1)
    logdet = 2.0 * chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    inv = torch.cholesky_inverse(chol)
    loo = alpha / inv.diagonal(dim1=-2, dim2=-1)
    return -0.5 * ((obs * alpha).sum(-1) + logdet), loo.square().mean(-1).sqrt()


def soil_maps():
    xy = torch.rand(MAPS, SITES, 2)
    gap = torch.cdist(xy, xy)
    length = (0.1 + 0.2 * torch.rand(MAPS))[:, None, None]
    cov = torch.exp(-gap / length)
    chol = torch.linalg.cholesky(cov + 1e-3 * torch.eye(SITES))
    obs = (chol @ torch.randn(MAPS, SITES, 1)).squeeze(-1)
    return cov, obs


def main():
    cov, obs = soil_maps()
    best, best_noise = None, None
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        noise = torch.tensor(0.01 + 0.3 * (step % 200) / 200)
        lml, loo = evidence(cov, obs, noise)
        total = lml.sum().item()
        if best is None or total > best:
            best, best_noise = total, noise.item()
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"trial {step} best {best:.2f} at nugget {best_noise:.4f} loo {loo.mean().item():.4f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
