from .hangar import Hangar
from .learner import Learner
from .net import Pilot

__all__ = ["Hangar", "Learner", "Pilot"]
