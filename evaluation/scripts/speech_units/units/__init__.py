from .service import UnitService

__all__ = ["UnitService"]
