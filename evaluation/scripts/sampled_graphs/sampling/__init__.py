from .neighbours import NeighbourSampler

__all__ = ["NeighbourSampler"]
