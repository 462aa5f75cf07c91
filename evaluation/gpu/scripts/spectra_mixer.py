"""Train a token/channel mixer on mass spectra and report achieved TFLOP/s."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

device = "cuda"
STEPS = int(os.environ.get("STEPS", "1500"))
BATCH = 192
PEAKS = 256
WIDTH = 256
DEPTH = 4


class Mixer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.n1 = nn.LayerNorm(width)
        self.tok = nn.Linear(tokens, tokens)
        self.n2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, x):
        h = F.gelu(self.tok(self.n1(x).transpose(1, 2)), approximate="tanh").transpose(1, 2)
        x = x + F.dropout(h, 0.1, self.training)
        h = self.fc2(F.silu(self.fc1(self.n2(x))) * 1.7)
        return x + F.dropout(torch.tanh(h), 0.1, self.training)


class SpectraNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(2, WIDTH)
        self.layers = nn.Sequential(*[Mixer(PEAKS, WIDTH) for _ in range(DEPTH)])
        self.head = nn.Linear(WIDTH, 64)

    def forward(self, peaks):
        return self.head(self.layers(self.embed(peaks)).mean(1))


def main():
    torch.manual_seed(6)
    torch.set_float32_matmul_precision("high")
    net = SpectraNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    model = torch.compile(net)
    peaks = torch.rand(8, BATCH, PEAKS, 2, device=device)
    target = torch.rand(8, BATCH, 64, device=device)

    def train(i):
        with torch.autocast(device, dtype=torch.bfloat16):
            pred = model(peaks[i % 8])
        loss = F.mse_loss(pred.float(), target[i % 8])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.detach()

    counter = FlopCounterMode(display=False)
    done = 0
    with counter:
        t0 = time.perf_counter()
        for step in range(1, STEPS + 1):
            loss = train(step)
            if step % 250 == 0 or step == STEPS:
                torch.cuda.synchronize()
                t1 = time.perf_counter()
                tflops = (counter.get_total_flops() - done) / (t1 - t0) / 1e12
                print(
                    f"step {step:5d}  mse {loss.item():.5f}  {1000 * (t1 - t0) / min(250, step):.3f} ms/step  {tflops:.2f} TFLOP/s",
                    flush=True,
                )
                t0, done = time.perf_counter(), counter.get_total_flops()


if __name__ == "__main__":
    main()
