from .net import Vocoder
from .training import Session

__all__ = ["Session", "Vocoder"]
