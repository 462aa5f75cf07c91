from .device import HearingAid

__all__ = ["HearingAid"]
