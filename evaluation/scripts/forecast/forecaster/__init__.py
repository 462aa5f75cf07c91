from .model import Forecaster
from .runner import Runner

__all__ = ["Forecaster", "Runner"]
