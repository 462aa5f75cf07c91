"""What the collector's events know of a compile: its process, and the id that torch gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def process_and_id(compile_keys: Iterable[str | None]) -> dict[str | None, tuple[int, str]]:
    """Compile's key → both, where they are no other compile's: ids repeat after a reset."""
    found = {key: _parts(key) for key in compile_keys}
    times = Counter(found.values())
    return {key: known for key, known in found.items() if times[known] == 1}


def _parts(compile_key: str | None) -> tuple[int, str]:
    _, pid, _, compile_id = (compile_key or ":0::").rsplit(":", 3)
    return int(pid), compile_id
