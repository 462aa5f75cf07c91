from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Settings:
    rounds: int = 25
    stiffness: float = 12.0
    outliers: float = 0.02
    tolerance: float = 1e-7


@dataclass
class Pose:
    turn: torch.Tensor
    shift: torch.Tensor
    residual: float = float("inf")
    rounds: int = 0
