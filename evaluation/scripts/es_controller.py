"""Evolution-strategy search over a deep residual controller kept as one flat genome."""
import math
import os
import time

import torch

OBS, HID, ACT, DEPTH, EPISODE = 24, 48, 6, 30, 32


class Layout:
    def __init__(self):
        self.shapes = [("in.w", (HID, OBS)), ("in.b", (HID,))]
        for i in range(DEPTH):
            self.shapes += [(f"blk{i}.w", (HID, HID)), (f"blk{i}.b", (HID,)), (f"blk{i}.gain", (HID,))]
        self.shapes += [("out.w", (ACT, HID)), ("out.b", (ACT,))]
        self.sizes = [math.prod(s) for _, s in self.shapes]
        self.total = sum(self.sizes)

    def unpack(self, genome):
        chunks = genome.split(self.sizes)
        return {name: c.view(shape) for c, (name, shape) in zip(chunks, self.shapes)}


layout = Layout()


def controller(genome, obs):
    p = layout.unpack(genome)
    h = torch.tanh(obs @ p["in.w"].t() + p["in.b"])
    for i in range(DEPTH):
        z = h @ p[f"blk{i}.w"].t() + p[f"blk{i}.b"]
        h = h + 0.1 * torch.tanh(z) * p[f"blk{i}.gain"]
    action = torch.tanh(h @ p["out.w"].t() + p["out.b"])
    return action, p


def plant(obs, action):
    drive = action.repeat(1, OBS // ACT)
    nxt = 0.97 * obs + 0.05 * drive
    cost = (nxt * nxt).mean() + 0.01 * (action * action).mean()
    return nxt, cost


def init_genome(gen):
    flat = torch.randn(layout.total, generator=gen) * 0.1
    for name, view in layout.unpack(flat).items():
        if name.endswith("gain"):
            view.fill_(1.0)
    return flat


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(5)
    mean = init_genome(gen)
    policy = torch.compile(controller)
    names = [n for n, _ in layout.shapes]

    best, best_cost = mean.clone(), float("inf")
    obs = torch.randn(EPISODE, OBS, generator=gen)
    audit = {}
    t0, t_half = time.process_time(), None
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                t_half = time.process_time()
            candidate = mean + 0.02 * torch.randn(layout.total, generator=gen)
            action, parts = policy(candidate, obs)
            obs, cost = plant(obs, action)
            watched = names[step % len(names)]
            audit[watched] = float(parts[watched].abs().max())
            score = float(cost)
            if score < best_cost:
                best, best_cost = candidate, score
            mean.lerp_(best, 0.05)
            if step % 60 == 59:
                obs = torch.randn(EPISODE, OBS, generator=gen)
    now = time.process_time()
    print(f"best cost {best_cost:.5f}  largest weight {max(audit.values()):.3f}")
    print(f"{1e3 * (now - t_half) / (steps - steps // 2):.3f} ms/step, total {now - t0:.1f} s cpu")


if __name__ == "__main__":
    main()
