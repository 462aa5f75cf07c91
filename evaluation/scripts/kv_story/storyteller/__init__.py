from .story import Story
from .teller import Teller

__all__ = ["Story", "Teller"]
