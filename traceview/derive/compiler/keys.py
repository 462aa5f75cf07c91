"""What the collector's events know of a compile: its process, and the id that torch gives it."""

from __future__ import annotations


def process_and_id(compile_key: str | None) -> tuple[int, str]:
    """Both, from a compile's key; they repeat after a reset."""
    _, pid, _, compile_id = (compile_key or ":0::").rsplit(":", 3)
    return int(pid), compile_id
