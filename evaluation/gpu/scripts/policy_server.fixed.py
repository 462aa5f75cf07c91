import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "20000"))
torch.manual_seed(17)
torch.set_float32_matmul_precision("high")
dev = "cuda"

WIDTH, DEPTH, BATCH = 4096, 32, 64


def init_weights():
    w = {"inp": torch.randn(WIDTH, 128) / 128**0.5, "out": torch.randn(32, WIDTH) / WIDTH**0.5}
    w = {k: v.to(dev, torch.bfloat16) for k, v in w.items()}
    for i in range(DEPTH):
        w[f"fc{i}"] = (torch.randn(WIDTH, WIDTH, device=dev) / WIDTH**0.5).bfloat16()
        w[f"g{i}"] = torch.ones(WIDTH, device=dev, dtype=torch.bfloat16)
    return w


@torch.compile(mode="reduce-overhead", fullgraph=True)
def controller(w, obs):
    h = F.linear(obs, w["inp"])
    for i in range(DEPTH):
        z = F.rms_norm(h, (WIDTH,), w[f"g{i}"], 1e-6)
        h = h + F.silu(F.linear(z, w[f"fc{i}"]))
    return torch.tanh(F.linear(h, w["out"]))


weights = init_weights()
for t in weights.values():
    torch._dynamo.mark_static_address(t)
targets = torch.randn(8, BATCH, 128, device=dev, dtype=torch.bfloat16)
obs = torch.randn(BATCH, 128, device=dev, dtype=torch.bfloat16)
lift = (torch.randn(32, 128, device=dev) * 0.1).bfloat16()


def control_step(obs, i):
    with torch.no_grad():
        act = controller(weights, obs)
        return 0.9 * obs + act @ lift + 0.1 * targets[i % 8]


half = STEPS // 2
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    obs = control_step(obs, step)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1000 / (STEPS - half)
print(f"ms per step {x:.4f}")
print("check", float(obs.float().abs().mean()))
