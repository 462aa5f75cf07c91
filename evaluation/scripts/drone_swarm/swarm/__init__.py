from .pilot import Pilot
from .telemetry import Telemetry

__all__ = ["Pilot", "Telemetry"]
