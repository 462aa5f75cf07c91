"""Sea level forecast: a mixture of small experts over tide-gauge windows, trained on a synthetic coast."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
dev = "cuda"
WIN, D, EXPERTS, LAYERS, BATCH = 48, 192, 16, 3, 4096


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.gate = nn.Linear(D, EXPERTS)
        self.w1 = nn.Parameter(torch.randn(EXPERTS, D, 2 * D) / D ** 0.5)
        self.w2 = nn.Parameter(torch.randn(EXPERTS, 2 * D, D) / (2 * D) ** 0.5)

    def forward(self, x):
        h = self.norm(x)
        prob, who = F.softmax(self.gate(h), -1).max(-1)
        part = torch.einsum("neh,ehd->ned", F.gelu(torch.einsum("nd,edh->neh", h, self.w1)), self.w2)
        y = part.gather(1, who.view(-1, 1, 1).expand(-1, 1, D)).squeeze(1)
        return x + y * prob.unsqueeze(-1)


class TideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(WIN, D)
        self.body = nn.ModuleList(MoE() for _ in range(LAYERS))
        self.out = nn.Linear(D, 1)

    def forward(self, w):
        x = torch.tanh(self.inp(w))
        for m in self.body:
            x = m(x)
        return self.out(x).squeeze(-1)


def batch():
    t = torch.rand(BATCH, 1, device=dev) * 1000 + torch.arange(WIN + 1, device=dev)
    ph = torch.rand(BATCH, 1, device=dev) * 6.28
    z = torch.sin(t * 0.506 + ph) + 0.5 * torch.sin(t * 0.253 + 2 * ph) + 0.05 * torch.randn_like(t)
    return z[:, :-1], z[:, -1]


def main():
    torch.set_float32_matmul_precision("high")
    net = TideNet().to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    model = torch.compile(net)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "1800"))):
        w, y = batch()
        loss = F.smooth_l1_loss(model(w), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(f"{it} loss {loss.item():.5f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
