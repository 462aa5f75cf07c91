from . import compat
from .model import CellModel
from .sampler import Sampler

compat.prepare()

__all__ = ["CellModel", "Sampler"]
