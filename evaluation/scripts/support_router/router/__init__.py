from .customers import customers
from .service import Service

__all__ = ["Service", "customers"]
