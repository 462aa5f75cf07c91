from .eye import load_eye

__all__ = ["load_eye"]
