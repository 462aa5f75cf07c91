from .net import IntentNet
from .service import IntentService
from .store import WeightStore

__all__ = ["IntentNet", "IntentService", "WeightStore"]
