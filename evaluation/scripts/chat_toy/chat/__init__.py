from .model import ChatModel
from .session import ChatSession

__all__ = ["ChatModel", "ChatSession"]
