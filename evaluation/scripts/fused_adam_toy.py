"""Model and optimizer step are both compiled, each by itself."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Autoencoder(nn.Module):
    def __init__(self, width=256, code=32):
        super().__init__()
        self.down = nn.Linear(width, code)
        self.up = nn.Linear(code, width)

    def forward(self, x):
        code = torch.tanh(self.down(x))
        noisy = code * torch.exp(-code.square()) + torch.sin(code)
        return F.elu(self.up(noisy)) * torch.sigmoid(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=60000)
    a = p.parse_args()
    torch.manual_seed(0)
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    forward = torch.compile(model)
    update = torch.compile(optimizer.step)
    x = torch.randn(512, 256)
    for i in range(a.iters):
        loss = F.mse_loss(forward(x), x)
        loss.backward()
        update()
        optimizer.zero_grad(set_to_none=True)
        if i % 2000 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
