from .ops import trimmed_mean

__all__ = ["trimmed_mean"]
