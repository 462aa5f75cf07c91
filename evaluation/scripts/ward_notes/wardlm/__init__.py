from .blocks import NoteModel
from .service import Triage

__all__ = ["NoteModel", "Triage"]
