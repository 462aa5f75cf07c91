from .callbacks import Patience, Progress
from .data import Fields
from .model import Moisture
from .trainer import Trainer

__all__ = ["Fields", "Moisture", "Patience", "Progress", "Trainer"]
