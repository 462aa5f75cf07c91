"""A training script that Hydra configures: ``device=cpu steps=100`` on its command line."""
from dataclasses import dataclass, field

import hydra
import torch
import torch.nn as nn
from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, OmegaConf
from steady import Steady


@dataclass
class Model:
    width: int = MISSING
    depth: int = 4
    patches: int = 64
    activation: str = "gelu"


@dataclass
class Config:
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    steps: int = 0
    lr: float = 1e-3
    model: Model = field(default_factory=Model)


ConfigStore.instance().store(name="config", node=Config)


class Mixer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width, patches = config.width, config.patches
        self.tokens = nn.ModuleList(nn.Linear(patches, patches) for _ in range(config.depth))
        self.channels = nn.ModuleList(nn.Linear(width, width) for _ in range(config.depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * config.depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        act = nn.functional.gelu if self.config.activation == "gelu" else nn.functional.relu
        for i in range(self.config.depth):
            x = x + act(self.tokens[i](self.norms[2 * i](x).mT)).mT
            x = x + act(self.channels[i](self.norms[2 * i + 1](x)))
        return self.head(x.mean(1))


@hydra.main(version_base=None, config_name="config")
def main(config):
    torch.manual_seed(0)
    on_gpu = config.device == "cuda"
    config.steps = config.steps or (1000 if on_gpu else 400)
    if OmegaConf.is_missing(config.model, "width"):
        config.model.width = 512 if on_gpu else 64
    batch = 256 if on_gpu else 16
    model = torch.compile(Mixer(config.model).to(config.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    x = torch.randn(8, batch, config.model.patches, config.model.width, device=config.device)
    y = torch.randint(0, 10, (8, batch), device=config.device)
    steady = Steady(config.steps, config.device)
    for step in range(config.steps):
        loss = nn.functional.cross_entropy(model(x[step % 8]), y[step % 8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steady.step()
    steady.show()


if __name__ == "__main__":
    main()
