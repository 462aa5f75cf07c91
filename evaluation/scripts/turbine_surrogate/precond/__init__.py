from .shampoo import Shampoo

__all__ = ["Shampoo"]
