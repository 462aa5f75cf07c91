import torch
import torch.nn as nn


class VeinNet(nn.Module):
    def __init__(self, width=16, species=5):
        super().__init__()
        self.gate, self.turn = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, species)

    def forward(self, h, degree, ends):
        batch, nodes, width = h.shape
        h = torch.tanh(self.mix(h)) + h
        shift = torch.arange(batch)[:, None] * nodes
        near = torch.repeat_interleave(torch.arange(batch * nodes), degree.flatten())
        far = (ends + shift).flatten()
        flat = h.flatten(0, 1)
        message = torch.sigmoid(flat[near] * self.gate) * flat[far]
        flat = flat + torch.zeros_like(flat).index_add(0, near, message * self.turn)
        return self.out(torch.relu(flat).unflatten(0, (batch, nodes)).mean(1))
