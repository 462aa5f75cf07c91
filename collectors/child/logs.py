"""Keep stderr as it would be without us: torch's handlers print only what the user asked for.

The parent sets TORCH_LOGS so that TORCH_LOGS_OUT gets many artifacts; torch prints them to stderr
too. A filter on torch's own stderr handlers takes those away again; warnings always pass. When the
script has ended and its calls are run again, nothing of that is shown at all.
"""

from __future__ import annotations

import ctypes
import functools
import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any


def quiet_stderr(user_logs: Iterable[str]) -> None:
    """Filter torch's stderr handlers, those of now and those that set_logs() makes later."""
    internal: Any = sys.modules["torch._logging._internal"]
    chosen, track = Chosen(user_logs, internal.log_registry), internal._track_handler

    def filtered(handler: logging.Handler) -> logging.Handler:
        if type(handler) is logging.StreamHandler:  # not the subclasses that write files
            handler.addFilter(chosen)
        return handler

    for handler in list(internal.handlers):
        filtered(handler)

    def _track_handler(handler: logging.Handler) -> logging.Handler:
        tracked: logging.Handler = track(filtered(handler))
        return tracked

    internal._track_handler = _track_handler

    @functools.wraps(internal.set_logs)
    def set_logs(**_levels: object) -> None:
        """Nothing, as where TORCH_LOGS is set: it would take our artifacts out of the log file."""

    if "TORCH_LOGS" not in os.environ:  # torch refuses by itself
        internal.set_logs = sys.modules["torch._logging"].set_logs = set_logs  # type: ignore[attr-defined]


class Chosen(logging.Filter):
    """Passes what the user's own TORCH_LOGS would have printed.

    ``registry`` is torch's ``LogRegistry``. Names are as in TORCH_LOGS: ``+dynamo``, ``-aot``,
    ``graph_breaks``, ``all``, or any module.
    """

    def __init__(self, user_logs: Iterable[str], registry: Any) -> None:
        super().__init__()
        self._registry = registry
        self._artifacts: set[str] = set()
        self._levels: dict[str, int] = {}
        for token in map(str.strip, user_logs):
            name = token.lstrip("+-")
            level = {"+": logging.DEBUG, "-": logging.ERROR}.get(token[:1], logging.INFO)
            if name in registry.artifact_names:
                self._artifacts.add(name)
            elif name == "all":
                self._levels.update(dict.fromkeys(registry.get_log_qnames(), level))
            elif name:
                named = registry.log_alias_to_log_qnames.get(name, name)
                qnames = [named] if isinstance(named, str) else named
                self._levels.update(dict.fromkeys(qnames, level))

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the user would have seen this record."""
        parent, _, last = record.name.rpartition(".")
        if not last.startswith("__"):
            return record.levelno >= self._level(record.name)
        artifact = last[2:]
        if artifact in self._artifacts:
            return True
        off = artifact in self._registry.off_by_default_artifact_names
        return not off and record.levelno >= self._level(parent)

    def _level(self, name: str) -> int:
        """The level in force for a logger: its own, else the nearest parent's, else WARNING."""
        while name:
            if name in self._levels:
                return self._levels[name]
            name = name.rpartition(".")[0]
        return logging.WARNING


@contextmanager
def nothing_shown() -> Iterator[None]:
    """No log, no structured log, no warning, and nothing on stdout and stderr from this thread."""
    trace = logging.getLogger("torch.__trace")  # logging.disable() does not reach it
    handlers, trace.handlers = trace.handlers, []
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), _streams_to_nowhere():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        trace.handlers = handlers


class _NotFromHere(io.TextIOBase):
    """A stream without what the thread that made this writes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        if self._stream is not None and threading.get_ident() != self._thread:
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        if self._stream is not None and threading.get_ident() != self._thread:
            self._stream.flush()


@contextmanager
def _streams_to_nowhere() -> Iterator[None]:
    """Nothing on stdout and stderr: by their descriptors, so that C code is silent, too.

    Compiled code may guard the type of ``sys.stdout``, so it stays what it is. It is replaced only
    where it does not write to a descriptor of ours, or a thread of the script's own might write.
    """
    targets = (getattr(each, "_target", None) for each in threading.enumerate())
    modules = (getattr(target, "__module__", None) or "" for target in targets)
    alone = all(not module or module.partition(".")[0] == "torch" for module in modules)
    with ExitStack() as stack, open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a descriptor
        _flush()
        for number, redirect in ((1, redirect_stdout), (2, redirect_stderr)):
            stream = sys.stdout if number == 1 else sys.stderr
            if not alone or _descriptor(stream) != number:
                stack.enter_context(redirect(_NotFromHere(stream)))
                continue
            saved = os.dup(number)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, number)
            os.dup2(nowhere.fileno(), number)
        stack.callback(_flush)
        yield


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def _flush() -> None:
    """Write out what Python's and C's streams hold."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with suppress(Exception):
        ctypes.CDLL(None).fflush(None)
