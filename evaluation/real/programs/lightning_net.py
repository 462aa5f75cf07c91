"""The autoencoder that both Lightning programs train, and their data."""
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(layers)
        )
        self.head = nn.Linear(width, width)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def loader(width, batch, steps):
    data = torch.utils.data.TensorDataset(torch.randn(max(steps * batch // 4, batch), width))
    return torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, drop_last=True)
