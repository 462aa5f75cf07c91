"""Linear probe for leaf-disease classes on top of a pretrained patch encoder: the encoder is used
as it is, only the classifier on its pooled output is fitted."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH, SIDE, DIM, DEPTH = (2, 32, 64, 2) if SMALL else (32, 224, 512, 8)
PATCH, HEADS, CLASSES = 16, 8, 38
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(a)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, DIM)
        self.pos = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2, DIM))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, img):
        x = F.unfold(img, PATCH, stride=PATCH).transpose(1, 2)
        x = self.embed(x) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.norm(x).mean(1)


class Probe(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(DIM, CLASSES)

    def forward(self, img, target):
        feature = self.encoder(img)
        return F.cross_entropy(self.classifier(feature).float(), target)


def main():
    torch.manual_seed(1)
    encoder = Encoder().eval().requires_grad_(False)
    probe = Probe(encoder).to(device=device, dtype=torch.bfloat16)
    opt = torch.optim.SGD(probe.classifier.parameters(), lr=0.05, momentum=0.9)
    images = torch.randn(4, BATCH, 3, SIDE, SIDE, device=device, dtype=torch.bfloat16)
    targets = torch.randint(0, CLASSES, (4, BATCH), device=device)
    objective = torch.compile(probe)

    half = STEPS // 2
    for step in range(STEPS):
        if step == half:
            if device.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = objective(images[step % 4], targets[step % 4])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"loss {loss.item():.4f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
