"""Super-convergence run with a compiled optimiser step."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(24)

STEPS = 400
STEPS = int(os.environ.get("STEPS", STEPS))
LAYERS, DIM, ROWS = 4, 320, 32


def net():
    mods = []
    for _ in range(LAYERS):
        mods += [nn.Linear(DIM, DIM, bias=False), nn.SiLU()]
    return nn.Sequential(*mods)


def make_batch(teacher):
    x = torch.randn(ROWS, DIM)
    with torch.no_grad():
        return x, teacher(x)


def main():
    model, teacher = net(), net()
    opt = torch.optim.Adam(model.parameters(), lr=torch.tensor(1e-4))
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, max_lr=3e-3, total_steps=STEPS + 1, pct_start=0.3)

    @torch.compile(fullgraph=False)
    def update():
        opt.step()

    lap = []
    for k in range(STEPS):
        x, y = make_batch(teacher)
        loss = (model(x) - y).square().mean()
        opt.zero_grad()
        loss.backward()
        t0 = time.perf_counter()
        update()
        sched.step()
        lap.append(time.perf_counter() - t0)
        if k % 80 == 0:
            g = opt.param_groups[0]
            print(f"step {k:4d} loss {loss.item():.5f} lr {float(g['lr']):.2e}")
    lap = sorted(lap[STEPS // 2:])
    print(f"final loss {loss.item():.6f}")
    print(f"median optimiser update {lap[len(lap) // 2] * 1e3:.4f} ms")


if __name__ == "__main__":
    main()
