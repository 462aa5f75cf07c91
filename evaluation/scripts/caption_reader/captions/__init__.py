from .data import Captions
from .pairs import Pairs
from .reader import Reader

__all__ = ["Captions", "Pairs", "Reader"]
