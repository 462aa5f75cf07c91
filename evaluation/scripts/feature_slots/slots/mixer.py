import torch
import torch.nn as nn


class SlotMixer(nn.Module):
    """Weighs the slots by recency and gates them against the newest one."""

    def __init__(self, width, slots):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(slots, width) * 0.3)
        self.shift = nn.Parameter(torch.randn(slots, width) * 0.3)
        self.register_buffer("recency", torch.linspace(1.0, 0.4, slots))

    def forward(self, tables):
        newest = tables[0]
        mixed = torch.zeros_like(newest)
        for table, scale, shift, weight in zip(tables, self.scale, self.shift, self.recency):
            raw = table * scale + shift
            gate = (0.5 + 0.25 * raw).clamp(0.0, 1.0)
            apart = table - 0.5 * newest
            mixed = mixed + weight * gate * apart / (1.0 + apart.abs())
        return (mixed * torch.relu(mixed)).mean(-1)
