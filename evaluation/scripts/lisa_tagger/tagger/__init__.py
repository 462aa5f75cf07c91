from .layers import Tagger
from .schedule import LayerLottery

__all__ = ["LayerLottery", "Tagger"]
