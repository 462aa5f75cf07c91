"""Pricing a regional crop cover: a one-factor copula over quasi-random draws of drought years."""
import os
import time
import torch

torch.manual_seed(0)

FARMS = 48
PATHS = 4096


@torch.compile
def season_loss(z, loading, threshold, hectares, attach, limit):
    common = z[:, :1]
    own = z[:, 1:]
    health = loading * common + torch.sqrt(1.0 - loading ** 2) * own
    shortfall = torch.sigmoid((threshold - health) * 4.0)
    claim = hectares * shortfall ** 1.5 * torch.exp(0.1 * common)
    total = claim.sum(1)
    layer = (total - attach).clamp(min=0.0).clamp(max=limit)
    return layer.mean(), total.mean(), layer.square().mean()


def main():
    sobol = torch.quasirandom.SobolEngine(FARMS + 1, scramble=True, seed=3)
    grid = sobol.draw(PATHS)
    loading = 0.3 + 0.4 * torch.rand(FARMS)
    threshold = -1.0 + 0.3 * torch.rand(FARMS)
    hectares = 20.0 + 100.0 * torch.rand(FARMS)
    attach, limit = torch.tensor(300.0), torch.tensor(900.0)
    acc = torch.zeros(3)
    start = time.time()
    for season in range(int(os.environ.get("STEPS", "1600"))):
        draws = (grid + torch.rand(FARMS + 1)) % 1.0
        z = torch.erfinv((2.0 * draws - 1.0).clamp(-0.999999, 0.999999)) * 1.41421356
        acc += torch.stack(season_loss(z, loading, threshold, hectares, attach, limit))
        if season % 160 == 159:
            layer, total, second = (acc / (season + 1)).tolist()
            spread = max(second - layer ** 2, 0.0) ** 0.5
            print(f"{season + 1:5d}  premium {layer:8.3f}  mean loss {total:9.3f}  sd {spread:8.3f}  "
                  f"{time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
