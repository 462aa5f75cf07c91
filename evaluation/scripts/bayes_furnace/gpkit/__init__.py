from .surrogate import Surrogate

__all__ = ["Surrogate"]
