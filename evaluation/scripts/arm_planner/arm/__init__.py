from .planner import Planner

__all__ = ["Planner"]
