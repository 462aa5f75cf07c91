from .ops import soft_clip

__all__ = ["soft_clip"]
