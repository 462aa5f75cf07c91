"""Heat budget of an apiary in winter: one cluster model for each colony, all fed from the same weather mast."""
import os

import torch
import torch.nn as nn

COLONIES, CELLS = 28, 30000


class WinterCluster(nn.Module):
    """Shells of bees from the core to the mantle; each colony has its own size, comb offset and temper."""

    def __init__(self, colony):
        super().__init__()
        self.register_buffer("colony", torch.tensor(float(colony)))
        self.register_buffer("shiver", torch.tensor(0.35 + 0.02 * colony))
        self.mantle = nn.Parameter(torch.rand(CELLS) * 0.2 + 0.9, requires_grad=False)
        self.register_buffer("temp", torch.full((CELLS,), 21.0))

    def forward(self, outside, wind):
        t = self.temp
        crowd = torch.sigmoid((18.0 - t) * self.shiver) * self.mantle
        heat = self.shiver * torch.exp(-((t - 34.0) / 12.0) ** 2) * (1 + crowd)
        loss = (t - outside) * (0.02 + 0.004 * torch.sqrt(wind + 0.1)) / (1 + 2.0 * crowd)
        breath = 0.01 * torch.tanh((t - 25.0) * 0.3) * torch.log1p(crowd)
        t = t + 0.5 * (heat - loss - breath)
        honey = heat.mean() * (1.0 + 0.001 * self.colony)
        return t, honey


class Apiary:
    def __init__(self):
        self.clusters = [WinterCluster(k) for k in range(COLONIES)]
        self.models = [torch.compile(c) for c in self.clusters]
        self.stores = torch.full((COLONIES,), 14.0)

    def hour(self, outside, wind):
        for k, (cluster, model) in enumerate(zip(self.clusters, self.models)):
            temp, honey = model(outside, wind)
            cluster.temp.copy_(temp)
            self.stores[k] -= 0.002 * honey


def mast(hour):
    """Outside temperature and wind of a January week, repeated."""
    day = torch.tensor(float(hour))
    outside = -2.0 + 5.0 * torch.sin(day * 0.2618) + torch.randn(()) * 0.5
    wind = torch.rand(()) * 8.0
    return outside, wind


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(3)
    apiary = Apiary()
    with torch.no_grad():
        for hour in range(steps):
            apiary.hour(*mast(hour))
    core = torch.stack([c.temp.mean() for c in apiary.clusters])
    print(f"{steps} h: coldest colony {core.min():.1f} C, warmest {core.max():.1f} C, honey left {apiary.stores.mean():.2f} kg")


if __name__ == "__main__":
    main()
