"""Pollutant transport over a river network; reaches are glued together from survey segments."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "30000"))
REACHES, SEGMENTS, SPECIES = 40_000, 4_000_000, 8
torch.manual_seed(11)


def survey():
    pool = torch.randint(0, REACHES, (2, SEGMENTS // 10), device="cuda")
    pick = torch.randint(0, pool.shape[1], (SEGMENTS,), device="cuda")
    return pool[:, pick], torch.rand(SEGMENTS, device="cuda")


def exchange_matrix():
    ends, flow = survey()
    per_reach = torch.zeros(REACHES, device="cuda").index_add_(0, ends[0], flow)
    flow = flow / per_reach[ends[0]].clamp_min(1e-6)
    return torch.sparse_coo_tensor(ends, flow, (REACHES, REACHES)).coalesce()


class Basin:
    def __init__(self):
        self.mix = exchange_matrix()
        self.load = torch.rand(REACHES, SPECIES, device="cuda")
        self.decay = torch.linspace(0.01, 0.08, SPECIES, device="cuda")
        self.source = torch.rand(REACHES, 1, device="cuda") * 0.01

    def tick(self):
        carried = torch.sparse.mm(self.mix, self.load)
        self.load = react(self.load, carried, self.decay, self.source)


@torch.compile
def react(load, carried, decay, source):
    moved = load + 0.4 * (carried - load)
    loss = decay * moved / (1.0 + moved.square())
    pair = moved.roll(1, dims=1)
    made = 0.02 * torch.tanh(moved * pair)
    fresh = moved - loss + made + source
    return torch.where(fresh > 0, fresh, torch.zeros_like(fresh)).clamp_max(20.0)


@torch.no_grad()
def main():
    basin = Basin()
    for step in range(STEPS):
        basin.tick()
        if step % 1000 == 0:
            print("hour", step, "mean load", round(basin.load.mean().item(), 5))
    print("peak", round(basin.load.max().item(), 4))


main()
