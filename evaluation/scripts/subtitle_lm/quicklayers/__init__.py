from .norms import RootNorm
from .waves import GatedWave

__all__ = ["GatedWave", "RootNorm"]
