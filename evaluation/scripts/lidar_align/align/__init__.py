from .core import Aligner
from .data import sweeps
from .types import Pose, Settings

__all__ = ["Aligner", "Pose", "Settings", "sweeps"]
