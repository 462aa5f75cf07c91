"""Click-through-rate scoring service: deep & cross network, warmed before traffic is admitted."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
STEPS = int(os.environ.get("STEPS", "9000"))
FIELDS = 24
EMB = 32
VOCAB = 50_000
BATCH = 32768


class CrossLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = nn.Parameter(torch.randn(dim) / dim**0.5)
        self.b = nn.Parameter(torch.zeros(dim))

    def forward(self, x0, x):
        return x0 * (x * self.w).sum(-1, keepdim=True) + self.b + x


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        dim = FIELDS * EMB
        self.table = nn.Embedding(FIELDS * VOCAB, EMB)
        self.register_buffer("offset", torch.arange(FIELDS) * VOCAB)
        self.cross = nn.ModuleList(CrossLayer(dim) for _ in range(5))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, ids):
        x0 = self.table(ids + self.offset).flatten(1)
        x = x0
        for layer in self.cross:
            x = F.silu(layer(x0, x))
        return torch.sigmoid(self.out(self.norm(x))).squeeze(-1)


class Service:
    def __init__(self, model):
        self.model = torch.compile(model)

    def warm_up(self):
        """Compile now; later requests must never wait for the compiler."""
        dummy = torch.zeros(BATCH, FIELDS, dtype=torch.long, device=device)
        for _ in range(3):
            self.model(dummy)
        torch.cuda.synchronize()
        torch.compiler.set_stance("eager_on_recompile")

    @torch.inference_mode()
    def score(self, ids):
        return self.model(ids)


def main():
    torch.manual_seed(8)
    service = Service(Ranker().to(device).eval())
    service.warm_up()
    traffic = [torch.randint(0, VOCAB, (BATCH, FIELDS), device=device) for _ in range(8)]
    total = torch.zeros((), device=device)
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        with torch.inference_mode():
            total = total + service.score(traffic[step % 8]).mean()
        if step % 500 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"batch {step:6d}  mean ctr {total.item() / step:.4f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
