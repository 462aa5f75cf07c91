"""Train a readmission model with per-patient clipped gradients and noise."""
import os
import time

import torch
from torch.func import grad, vmap
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = int(os.environ.get("STEPS", "30000"))
PATIENTS = 4096
FEATS = 64
HID = 128
CLIP = 1.0
DEV = "cuda"


def make_params():
    def w(*s):
        return torch.randn(*s, device=DEV) * s[0] ** -0.5
    return {"w1": w(FEATS, HID), "b1": torch.zeros(HID, device=DEV),
            "w2": w(HID, HID), "b2": torch.zeros(HID, device=DEV),
            "w3": w(HID, 1)}


def loss_one(p, x, y):
    h = torch.tanh(x @ p["w1"] + p["b1"])
    h = torch.nn.functional.silu(h @ p["w2"] + p["b2"])
    return torch.nn.functional.binary_cross_entropy_with_logits((h @ p["w3"]).squeeze(-1), y)


@torch.compile
def private_grads(p, x, y):
    g = vmap(grad(loss_one), in_dims=(None, 0, 0))(p, x, y)
    norm = sum(v.flatten(1).square().sum(1) for v in g.values()).sqrt()
    factor = (CLIP / (norm + 1e-6)).clamp(max=1.0)
    return {k: (v * factor.view(-1, *[1] * (v.dim() - 1))).sum(0) for k, v in g.items()}, norm.mean()


def main():
    torch.manual_seed(19)
    torch.set_float32_matmul_precision("high")
    params = make_params()
    x = torch.randn(8, PATIENTS, FEATS, device=DEV)
    y = (x[..., 0] * x[..., 1] > 0).float()
    noise = torch.Generator(device=DEV).manual_seed(1)
    acts = [ProfilerActivity.CPU]
    t0 = time.time()
    with profile(activities=acts, schedule=schedule(wait=20, warmup=2, active=3, repeat=1)) as prof:
        for step in range(STEPS):
            k = step % 8
            grads, norm = private_grads(params, x[k], y[k])
            for name, g in grads.items():
                g = g + CLIP * 0.8 * torch.randn(g.shape, generator=noise, device=DEV)
                params[name].sub_(g, alpha=0.2 / PATIENTS)
            if step < 30:
                prof.step()
            if step % 2000 == 0:
                print(f"step {step} grad norm {norm.item():.3f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
