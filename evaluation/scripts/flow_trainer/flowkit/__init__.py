from .checks import require_finite
from .layers import CouplingFlow

__all__ = ["CouplingFlow", "require_finite"]
