"""Garbage collections as profiler ranges, while a window is open."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


class Collections:
    """Ranges ``traceview gc G`` (generation) between `start` and `stop`, where it is collected."""

    def __init__(self, begin: Callable[[str], Any]) -> None:
        self._begin = begin
        self._range: Any = None
        self._on_collection = self._heard

    def start(self) -> None:
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
        self._end()

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        """One collection runs at a time, whatever the thread (gc.callbacks)."""
        self._end()
        if phase == "start":
            self._range = self._begin(f"traceview gc {info['generation']}")

    def _end(self) -> None:
        range_, self._range = self._range, None
        if range_ is not None:
            range_.__exit__(None, None, None)
