"""Point-cloud autoencoder training with careful memory housekeeping."""
import os
import os
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(5)

B, P, H = 16, 1024, 256
STEPS = 500
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


def release_memory():
    if DEV == "cuda":
        torch.cuda.empty_cache()


class AutoEnc(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(3, H)
        self.mid = nn.ModuleList(nn.Linear(H, H) for _ in range(16))
        self.code = nn.Linear(H, 64)
        self.grow = nn.Linear(64 + 3, H)
        self.out = nn.Linear(H, 3)

    def forward(self, pts):
        h = torch.tanh(self.inp(pts))
        for layer in self.mid:
            h = h + nn.functional.silu(layer(h))
        z = self.code(h.amax(1))
        z = z[:, None].expand(-1, pts.shape[1], -1)
        d = nn.functional.silu(self.grow(torch.cat([z, pts * 0.1], -1)))
        return self.out(d)


def shapes(b):
    u = torch.randn(b, P, 3, device=DEV)
    u = u / u.norm(dim=-1, keepdim=True)
    return u * (0.5 + torch.rand(b, 1, 3, device=DEV))


def main():
    net = AutoEnc().to(DEV)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=DEV == "cuda")
    model = torch.compile(net)
    laps = []
    for k in range(STEPS):
        pts = shapes(B)
        sync()
        t0 = time.perf_counter()
        loss = (model(pts) - pts).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if k % 200 == 199:
            release_memory()
        sync()
        laps.append(time.perf_counter() - t0)
        if k % 20 == 0:
            print(f"step {k:4d} loss {loss.item():.5f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"final loss {loss.item():.5f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
