"""Compile figures in what transformers' Trainer logs to.

trainer = Trainer(...)
trainer.add_callback(CompileCallback(trainer))
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from traceview.callbacks import Figures


class CompileCallback(TrainerCallback):  # type: ignore[misc] # of a library without types
    """Logs compile figures by ``trainer.log``, each time that the trainer logs, and new reasons."""

    def __init__(self, trainer: Any) -> None:  # noqa: ANN401
        self._trainer = trainer
        self._figures = Figures()
        self._logging = False

    def on_train_begin(self, *_given: object, **_named: object) -> None:
        """Begin to count."""
        self._figures.start()

    def on_log(self, *_given: object, **_named: object) -> None:
        """Log what there is, except for a log of ours."""
        if self._logging or not self._figures.counting:
            return
        figures, texts = self._figures.take()
        self._logging = True
        try:
            self._trainer.log({**figures, **texts})
        finally:
            self._logging = False

    def on_train_end(self, *_given: object, **_named: object) -> None:
        """Count no more."""
        self._figures.stop()
