from .body import Body, brick
from .solver import Solver

__all__ = ["Body", "Solver", "brick"]
