from .layer import MixtureLayer

__all__ = ["MixtureLayer"]
