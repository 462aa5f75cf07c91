import os
import time

import torch
import torch.nn as nn

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

KNOBS = 64
HIDDEN = 64 if SMALL else 6144
LAYERS = 2 if SMALL else 3
BATCH = 32 if SMALL else 256


class BeamSurrogate(nn.Module):
    """Magnet settings -> beam moments at the detector."""

    def __init__(self):
        super().__init__()
        layers = [nn.Linear(KNOBS, HIDDEN), nn.SiLU()]
        for _ in range(LAYERS):
            layers += [nn.Linear(HIDDEN, HIDDEN), nn.SiLU()]
        layers.append(nn.Linear(HIDDEN, 12))
        self.net = nn.Sequential(*layers)

    def forward(self, knobs):
        return self.net(knobs)


def fake_beamline(knobs, mix):
    lin = knobs @ mix
    return torch.tanh(lin) + 0.1 * lin.square().clamp(max=4.0)


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    model = BeamSurrogate().to(DEV)
    mix = torch.randn(KNOBS, 12, device=DEV) / KNOBS ** 0.5

    lr = torch.tensor(1e-4, device=DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, max_lr=torch.tensor(4e-4, device=DEV), total_steps=STEPS + 1, pct_start=0.3,
    )

    surrogate = torch.compile(model)

    @torch.compile(fullgraph=False)
    def apply_update():
        opt.step()

    losses = []
    t0 = time.perf_counter()
    for step in range(STEPS):
        if step == STEPS // 2:
            sync()
            t0 = time.perf_counter()
        knobs = torch.randn(BATCH, KNOBS, device=DEV)
        target = fake_beamline(knobs, mix)
        loss = (surrogate(knobs) - target).square().mean()
        loss.backward()
        apply_update()
        sched.step()
        opt.zero_grad()
        losses.append(loss.detach())
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    track = torch.stack(losses)
    print(f"loss first={track[0].item():.4f} last={track[-1].item():.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
