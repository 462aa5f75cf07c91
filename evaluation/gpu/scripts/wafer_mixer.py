"""Defect classes of silicon wafers from die maps: an MLP-mixer trained in bfloat16."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 1500))
BATCH, DIES, WIDTH, LAYERS = (8, 16, 32, 2) if small else (512, 64, 384, 8)
DEFECTS = 11


class MixerLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.across = nn.Sequential(nn.Linear(DIES, 2 * DIES), nn.GELU(), nn.Linear(2 * DIES, DIES))
        self.within = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(3 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norm2(x))


class WaferMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(16, WIDTH)
        self.layers = nn.Sequential(*[MixerLayer() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, DEFECTS)

    def forward(self, dies):
        return self.head(self.layers(self.stem(dies)).mean(1))


def main():
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = WaferMixer().to(device)
    model.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    dies = torch.randn(10, BATCH, DIES, 16, device=device)
    defect = torch.randint(0, DEFECTS, (10, BATCH), device=device)
    held_out = torch.randn(BATCH, DIES, 16, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        k = step % 10
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(dies[k]), defect[k])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 300 == 0:
            model.eval()
            with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
                confidence = model(held_out).float().softmax(-1).amax(-1).mean()
            model.train()
            print(f"step {step:5d} loss {loss.item():.4f} confidence {confidence.item():.3f} "
                  f"({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
