from . import speed
from .diffuser import Diffuser

__all__ = ["Diffuser", "speed"]
