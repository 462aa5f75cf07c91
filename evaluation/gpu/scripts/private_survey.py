"""Differentially private regression on survey answers: per-person gradients (torch.func), clipped, noised."""
import os
import time
import torch
import torch.nn.functional as F
from torch.func import grad, vmap

torch.manual_seed(22)
dev = "cuda"
Q, H, PEOPLE, CLIP, SIGMA, LR = 96, 128, 8192, 1.0, 0.6, 0.05


def person_loss(p, x, y):
    h = torch.tanh(x @ p["w1"] + p["b1"])
    h = F.silu(h @ p["w2"] + p["b2"])
    return F.huber_loss((h @ p["w3"]).squeeze(-1), y)


@torch.compile
def private_grads(p, x, y):
    g = vmap(grad(person_loss), in_dims=(None, 0, 0))(p, x, y)
    norm = sum(v.flatten(1).pow(2).sum(1) for v in g.values()).sqrt()
    scale = (CLIP / (norm + 1e-6)).clamp(max=1.0)
    return {k: (v * scale.view(-1, *[1] * (v.dim() - 1))).sum(0) for k, v in g.items()}, norm.mean()


def main():
    torch.set_float32_matmul_precision("high")
    p = {"w1": torch.randn(Q, H, device=dev) / Q ** 0.5, "b1": torch.zeros(H, device=dev),
         "w2": torch.randn(H, H, device=dev) / H ** 0.5, "b2": torch.zeros(H, device=dev),
         "w3": torch.randn(H, 1, device=dev) / H ** 0.5}
    truth = torch.randn(Q, device=dev)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "25000"))):
        x = torch.randn(PEOPLE, Q, device=dev)
        y = torch.sin(x @ truth * 0.2)
        g, norm = private_grads(p, x, y)
        for k in p:
            p[k] = p[k] - LR * (g[k] + SIGMA * CLIP * torch.randn_like(g[k])) / PEOPLE
        if it % 1000 == 0:
            print(f"{it} mean gradient norm {norm.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
