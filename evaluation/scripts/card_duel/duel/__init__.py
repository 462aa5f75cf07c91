from .evaluator import Evaluator
from .table import Table

__all__ = ["Evaluator", "Table"]
