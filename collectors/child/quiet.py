"""Nothing of what runs here is logged, warned of or printed."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No log, no structured log, no warning, nothing on stdout and stderr from Python."""
    trace = logging.getLogger("torch.__trace")  # logging.disable() does not reach it
    handlers, trace.handlers = trace.handlers, []
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        trace.handlers = handlers
