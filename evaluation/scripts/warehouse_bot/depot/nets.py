import torch
from torch import nn
import torch.nn.functional as F


class Picker(nn.Module):
    def __init__(self, seen, hidden, moves):
        super().__init__()
        self.inner = nn.Linear(seen, hidden)
        self.gate = nn.Linear(seen, hidden)
        self.worth = nn.Linear(hidden, moves)

    def forward(self, seen):
        hidden = F.silu(self.inner(seen)) * torch.sigmoid(self.gate(seen))
        hidden = F.layer_norm(hidden, hidden.shape[-1:])
        return self.worth(hidden)
