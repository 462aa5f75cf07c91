from .norm import CheckedNorm

__version__ = "0.3.1"
__all__ = ["CheckedNorm"]
