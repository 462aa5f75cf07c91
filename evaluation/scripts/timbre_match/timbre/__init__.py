from .meter import LevelMeter
from .optim import Damped
from .synth import Synth

__all__ = ["Damped", "LevelMeter", "Synth"]
