from .catalogue import Catalogue, visitors
from .mixer import SlotMixer

__all__ = ["Catalogue", "SlotMixer", "visitors"]
