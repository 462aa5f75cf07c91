from .net import SpliceNet
from .train import Trainer

__all__ = ["SpliceNet", "Trainer"]
