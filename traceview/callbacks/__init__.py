"""Compile figures in the logger of a training loop, for transformers, Lightning and accelerate.

A module for each library, which imports it. Names of figures begin with ``traceview/``; those that
begin with ``new_`` count from the last time that figures were logged, the others from the start.
"""

from __future__ import annotations

from collections import deque

from traceview.compiles import Compile, Watch

__all__ = ["Figures"]

_PREFIX = "traceview/"
_COUNTS = ("compiles", "compile_seconds", "recompiles", "graph_breaks")


class Figures:
    """Compile figures of this process between ``start`` and ``stop``."""

    def __init__(self) -> None:
        self.counting = False
        self._ended: deque[Compile] = deque()  # of whatever thread compiles
        self._watch = Watch(self._ended.append)

    def start(self) -> None:
        """Count from zero."""
        self._ended.clear()
        self._totals = dict.fromkeys(_COUNTS, 0.0)
        self._breaks: set[str] = set()
        self._watch.start()
        self.counting = True

    def stop(self) -> None:
        """Count no more."""
        self._watch.stop()
        self.counting = False

    def take(self) -> tuple[dict[str, float], dict[str, str]]:
        """Figures by the names to log them under, and the newest reasons, if there are new ones."""
        new, texts = dict.fromkeys(_COUNTS, 0.0), dict[str, str]()
        while self._ended:
            compile = self._ended.popleft()
            new["compiles"] += 1
            new["compile_seconds"] += compile.seconds
            if compile.recompile is not None:
                new["recompiles"] += 1
                texts[f"{_PREFIX}newest_recompile"] = compile.recompile
            for sentence in compile.breaks:  # a line that breaks again is no other break
                if sentence not in self._breaks:
                    self._breaks.add(sentence)
                    new["graph_breaks"] += 1
                    texts[f"{_PREFIX}newest_graph_break"] = sentence
        figures = dict[str, float]()
        for name, count in new.items():
            self._totals[name] += count
            figures[_PREFIX + name] = self._totals[name]
            figures[f"{_PREFIX}new_{name}"] = count
        return figures, texts
