from .ranker import GraspRanker
from .timing import sections

__all__ = ["GraspRanker", "sections"]
