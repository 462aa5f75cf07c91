"""Compile figures in Lightning's loggers.

Trainer(callbacks=[CompileCallback()])
"""

from __future__ import annotations

from typing import Any

from traceview.callbacks import Figures

try:
    from lightning.pytorch import Callback
except ImportError:  # installed under the older name
    from pytorch_lightning import Callback


class CompileCallback(Callback):  # type: ignore[misc] # follow_imports = "skip"
    """Logs compile figures every ``log_every_n_steps`` steps, and when the fit ends.

    Each logger gets them by ``log_metrics``; TensorBoard's gets new reasons as text.
    """

    def __init__(self) -> None:
        self._figures = Figures()
        self._step = -1

    def on_fit_start(self, *_given: object) -> None:
        """Begin to count."""
        self._figures.start()

    def on_train_batch_end(self, trainer: Any, *_given: object) -> None:  # noqa: ANN401
        """Log at the trainer's interval, once for steps of several batches."""
        step = trainer.global_step
        if step != self._step and step % max(trainer.log_every_n_steps, 1) == 0:
            self._log(trainer)

    def on_fit_end(self, trainer: Any, *_given: object) -> None:  # noqa: ANN401
        """Log what is left, and count no more."""
        if trainer.global_step != self._step:
            self._log(trainer)
        self._figures.stop()

    def on_exception(self, *_given: object) -> None:
        """Count no more."""
        self._figures.stop()

    def _log(self, trainer: Any) -> None:  # noqa: ANN401
        self._step = step = trainer.global_step
        figures, texts = self._figures.take()
        for logger in trainer.loggers:
            logger.log_metrics(figures, step=step)
            add_text = getattr(getattr(logger, "experiment", None), "add_text", None)
            if add_text is not None:
                for name, text in texts.items():
                    add_text(name, text, step)
