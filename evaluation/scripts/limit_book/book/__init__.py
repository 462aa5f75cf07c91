from .feed import Feed
from .model import MoveNet
from .replay import replay

__all__ = ["Feed", "MoveNet", "replay"]
