from .boxes import suppress
from .net import Spotter

__all__ = ["Spotter", "suppress"]
