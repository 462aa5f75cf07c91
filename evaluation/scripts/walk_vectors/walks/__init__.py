from .fit import Fit
from .graph import Graph
from .walker import Walker

__all__ = ["Fit", "Graph", "Walker"]
