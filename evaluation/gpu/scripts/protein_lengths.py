"""Per-residue disorder prediction; batches are cut to the longest protein in them."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
dev = "cuda"
D, DEPTH, BATCH = 256, 5, 64


class GLU(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(D, D)
        self.decay = nn.Parameter(torch.rand(D))

    def forward(self, x, keep):
        u, g = self.up(self.norm(x)).chunk(2, -1)
        h = F.gelu(u) * torch.sigmoid(g) + torch.tanh(self.decay * u)
        pooled = (h * keep).sum(1, keepdim=True) / keep.sum(1, keepdim=True)
        h = self.down(h - pooled * torch.sigmoid(self.decay))
        return x + F.silu(h) * keep


class Disorder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Linear(21, D)
        self.layers = nn.ModuleList(GLU() for _ in range(DEPTH))
        self.out = nn.Linear(D, 1)

    def forward(self, seq, keep):
        x = self.emb(seq) * keep
        for layer in self.layers:
            x = layer(x, keep)
        return self.out(x).squeeze(-1)


def main():
    torch.set_float32_matmul_precision("high")
    net = Disorder().to(dev)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    gen = torch.Generator().manual_seed(1)
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "4000"))):
        longest = int(torch.randint(600, 1200, (1,), generator=gen))
        seq = torch.randint(0, 21, (BATCH, longest), device=dev)
        lens = torch.randint(longest // 2, longest + 1, (BATCH, 1), device=dev)
        keep = (torch.arange(longest, device=dev) < lens).float().unsqueeze(-1)
        y = ((seq == 3) | (seq == 7) | (seq == 15)).float()
        loss = (F.binary_cross_entropy_with_logits(model(F.one_hot(seq, 21).float(), keep), y, reduction="none") * keep.squeeze(-1)).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 200 == 0:
            print(f"{it} length {longest} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
