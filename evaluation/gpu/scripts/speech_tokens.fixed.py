"""Turn hours of speech features into token posteriors, layer by layer."""
import os
import time

import torch
import torch.nn as nn

CHUNKS = int(os.environ.get("CHUNKS", "2000"))
LAYERS = 24
BATCH = 8
FRAMES = 4096
DIM = 1024
DEV = "cuda"


class TimeMix(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.register_buffer("depth", torch.tensor(float(depth)))
        self.decay = nn.Parameter(torch.rand(DIM))
        self.bonus = nn.Parameter(torch.zeros(DIM))
        self.gate = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x):
        h = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
        prev = torch.roll(h, 1, dims=1)
        w = torch.sigmoid(self.decay)
        h = h * w + prev * (1 - w) + self.bonus
        g = self.gate(h)
        g = torch.relu(g).square()
        g = g / (1 + g)
        h = torch.tanh(h) * g + 0.5 * h * torch.sigmoid(h)
        return x + h / (2.0 * (self.depth + 1)) ** 0.5


class Tokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([TimeMix(i) for i in range(LAYERS)])
        self.head = nn.Linear(DIM, 64)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@torch.no_grad()
def main():
    torch.manual_seed(6)
    net = Tokenizer().to(DEV, torch.bfloat16).eval()
    for i in range(LAYERS):
        net.layers[i] = torch.compile(net.layers[i])
    feats = torch.randn(4, BATCH, FRAMES, DIM, device=DEV, dtype=torch.bfloat16)
    usage = torch.zeros(64, device=DEV)
    t0 = time.time()
    for c in range(CHUNKS):
        post = net(feats[c % 4]).float().softmax(-1)
        usage += post.mean((0, 1))
        if c % 200 == 0:
            print(f"chunk {c} max usage {usage.max().item() / (c + 1):.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
