from .model import Ranker
from .scope import MARKETS, visiting

__all__ = ["MARKETS", "Ranker", "visiting"]
