from .lengths import clip_lengths
from .net import PitchNet

__all__ = ["PitchNet", "clip_lengths"]
