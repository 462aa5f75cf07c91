"""Compile figures in accelerate's trackers.

with CompileLog(accelerator) as compiles:
    for step, batch in enumerate(loader):
        ...
        if step % 10 == 0:
            compiles.log(step)
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from traceview.callbacks import Figures

if TYPE_CHECKING:
    from accelerate import Accelerator


class CompileLog:
    """Counts in a ``with`` block; ``log`` gives figures and new reasons to ``accelerator.log``."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._figures = Figures()

    def __enter__(self) -> CompileLog:
        self._figures.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._figures.stop()

    def log(self, step: int | None = None) -> None:
        """Log what there is."""
        figures, texts = self._figures.take()
        self._accelerator.log({**figures, **texts}, step=step)
