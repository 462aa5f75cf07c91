import torch
import torch.nn as nn


class Cache(nn.Module):
    def __init__(self, batch, heads, most, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, heads, most, size), persistent=False)
        self.register_buffer("values", torch.zeros(batch, heads, most, size), persistent=False)
        self.filled = 0

    def clear(self):
        self.filled = 0

    def extend(self, key, value):
        self.keys[:, :, self.filled] = key
        self.values[:, :, self.filled] = value
        self.filled += 1
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]
