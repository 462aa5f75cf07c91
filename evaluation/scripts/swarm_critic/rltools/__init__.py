"""Small tools for reinforcement learning."""
from .scaling import RunningScale

__all__ = ["RunningScale"]
__version__ = "0.4.2"
