from .data import CharBatches
from .model import MiniLM, MiniLMConfig

__all__ = ["CharBatches", "MiniLM", "MiniLMConfig"]
