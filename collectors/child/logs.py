"""Keep stderr as it would be without us: torch's handlers print only what the user asked for.

The parent sets TORCH_LOGS so that TORCH_LOGS_OUT gets many artifacts; torch prints them to stderr
too. A filter on torch's own stderr handlers takes those away again; warnings always pass.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
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
