from .agent import Agent
from .log import Log

__all__ = ["Agent", "Log"]
