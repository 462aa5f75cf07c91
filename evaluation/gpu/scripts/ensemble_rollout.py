import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "6000"))
torch.manual_seed(12)
torch.set_float32_matmul_precision("high")
dev = "cuda"

E, B, OBS, ACT, HID, HORIZON = 7, 32768, 24, 8, 256, 4


class EnsembleLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(E, n_in, n_out) / n_in**0.5)
        self.bias = nn.Parameter(torch.randn(E, 1, n_out) * 0.1)

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class DynamicsEnsemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = EnsembleLinear(OBS + ACT, HID)
        self.mid = nn.ModuleList(EnsembleLinear(HID, HID) for _ in range(4))
        self.out = EnsembleLinear(HID, OBS)

    def forward(self, obs, act):
        h = F.silu(self.inp(torch.cat([obs, act], -1)))
        for layer in self.mid:
            h = F.silu(layer(h))
        return obs + 0.1 * torch.tanh(self.out(h))


model = DynamicsEnsemble().to(dev, torch.bfloat16).eval()
policy = (torch.randn(OBS, ACT, device=dev) / OBS**0.5).bfloat16()
starts = torch.randn(4, B, OBS, device=dev, dtype=torch.bfloat16)


@torch.compile
def imagine(obs0):
    obs = obs0.expand(E, B, OBS)
    ret = torch.zeros(E, B, device=obs0.device)
    for _ in range(HORIZON):
        act = torch.tanh(obs @ policy)
        obs = model(obs, act)
        ret = ret - obs.float().square().mean(-1)
    return ret.mean(), ret.std(0)



half = STEPS // 2
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    with torch.no_grad():
        score, spread = imagine(starts[step % 4])
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1000 / (STEPS - half)
print(f"ms per step {x:.4f}")
print("check", float(score))
