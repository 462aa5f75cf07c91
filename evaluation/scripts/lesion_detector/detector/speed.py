from dataclasses import dataclass

import torch


@dataclass
class SpeedConfig:
    backend: str = "nvfuser"
    dynamic: bool = False


def accelerate(model, config):
    return torch.compile(model, backend=config.backend, dynamic=config.dynamic)
