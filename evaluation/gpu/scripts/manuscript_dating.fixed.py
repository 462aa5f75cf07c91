"""Dating of medieval manuscripts from line images: fine-tuning a deep residual encoder.

Lower layers learn more slowly than upper ones, biases and norms are not decayed.
"""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 400))
WIDTH, LAYERS, SLICES, BATCH = (32, 3, 16, 4) if small else (192, 32, 48, 16)
CENTURIES = 9


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return torch.addcmul(x, self.scale, self.down(F.gelu(self.up(self.norm(x)))))


class LineEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(48, WIDTH)
        self.place = nn.Parameter(torch.zeros(SLICES, WIDTH))
        self.layers = nn.ModuleList(Layer(WIDTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, CENTURIES)

    def forward(self, strips):
        x = self.patch(strips) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def parameter_groups(model, top=4e-4, factor=0.6):
    groups = {}
    for name, p in model.named_parameters():
        stage = int(name.split(".")[1]) // 8 + 1 if name.startswith("layers") else 0
        if name.startswith("head"):
            stage = LAYERS // 8 + 1
        key = (top * factor ** (LAYERS // 8 + 1 - stage), 0.05 if p.ndim > 1 else 0.0)
        groups.setdefault(key, []).append(p)
    groups = [{"params": ps, "lr": lr, "weight_decay": wd} for (lr, wd), ps in groups.items()]
    return groups


def main():
    torch.manual_seed(4)
    torch.set_float32_matmul_precision("high")
    model = LineEncoder().to(device)
    optimizer = torch.optim.NAdam(parameter_groups(model), decoupled_weight_decay=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    model.compile()
    strips = torch.randn(32, BATCH, SLICES, 48, device=device)
    century = torch.randint(0, CENTURIES, (32, BATCH), device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        k = step % 32
        loss = F.cross_entropy(model(strips[k]), century[k])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} lr {schedule.get_last_lr()[-1]:.2e} "
                  f"({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
