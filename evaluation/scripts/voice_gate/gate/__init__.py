from .net import GateNet
from .stream import microphones

__all__ = ["GateNet", "microphones"]
