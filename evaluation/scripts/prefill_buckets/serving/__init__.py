from .engine import BUCKETS, Engine

__all__ = ["BUCKETS", "Engine"]
