from .episode import Episode
from .planner import Planner
from .world import WorldModel

__all__ = ["Episode", "Planner", "WorldModel"]
