from .data import turns
from .model import build
from .settings import Settings
from .trainer import TurnTrainer

__all__ = ["Settings", "TurnTrainer", "build", "turns"]
