from .data import by_length
from .model import Writer
from .school import School

__all__ = ["Writer", "School", "by_length"]
