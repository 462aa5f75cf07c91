"""Imported by ``site`` before any code of the user's, because the parent put this folder first.

It takes every trace of itself away (``sys.path``, the environment, ``sys.modules``), imports the
``sitecustomize`` that Python would have found without it, and starts the collector. A failure of
the collector is noted in the events, and never reaches the user's script.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = "_traceview_child"
CONFIG = "TRACEVIEW_CHILD_CONFIG"
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Undo our own path entry, chain to the next sitecustomize, start collecting."""
    sys.path[:] = [entry for entry in sys.path if not _is_here(entry)]
    sys.path_importer_cache.pop(str(HERE), None)
    config: dict[str, Any] | None = None
    if path := os.environ.get(CONFIG):
        with suppress(OSError, ValueError):
            read = json.loads(Path(path).read_text(encoding="utf-8"))
            config = read if isinstance(read, dict) else None
    # Under torchrun the workers are collected; the launcher hands our variables on to them.
    many = config is not None and (config.get("nproc") or 1) > 1
    worker = many and "TORCHELASTIC_RUN_ID" in os.environ
    launcher = many and not worker
    if config is not None and not worker:
        # SIGTERM for this process when traceview is killed: nothing else would end the script then.
        with suppress(Exception):  # Linux only, and not every Python has ctypes
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    names = [CONFIG, "PYTHONPATH", *((config or {}).get("variables") or ())]
    given = {name: os.environ[name] for name in names if name in os.environ}
    if not launcher:
        # What the user's own subprocesses inherit must not lead back here.
        os.environ.pop(CONFIG, None)
        kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        # Where nothing is left, it was unset or empty; a script that replaces itself may set it.
        own: str | None = os.pathsep.join(entry for entry in kept if not _is_here(entry))
        if not own:
            own = "" if config is not None and config.get("pythonpath") == "" else None
        _set("PYTHONPATH", own)
        # torch gets ours while it is imported (logs.py): what else runs would print what we want.
        if config is not None and "TORCH_LOGS" in (config.get("variables") or ()):
            _set("TORCH_LOGS", config.get("torch_logs"))
    ours = _chain()
    if config is not None and not launcher:
        _start(config, given)
    if ours is not None:
        sys.meta_path.insert(0, _Leave(ours))


def _is_here(entry: str) -> bool:
    return bool(entry) and os.path.realpath(entry) == str(HERE)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _chain() -> ModuleType | None:
    """Import the next ``sitecustomize``; where there is none, the module that must leave again."""
    ours = sys.modules.pop("sitecustomize", None)
    importlib.invalidate_caches()
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:  # importlib wants to find what it is loading
            sys.modules["sitecustomize"] = ours
        return ours
    return None


class _Leave:
    """On the first import after us it takes our name out of ``sys.modules``, and goes too."""

    def __init__(self, ours: ModuleType) -> None:
        self._ours = ours

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if sys.modules.get("sitecustomize") is self._ours:
            del sys.modules["sitecustomize"]
        # the import system is walking the list that has just lost an entry: walk it to the end here
        specs = (finder.find_spec(name, path, target) for finder in list(sys.meta_path))
        return next((spec for spec in specs if spec is not None), None)


def _start(config: dict[str, Any], given: dict[str, str]) -> None:
    """Load the collector under its private name and start it; a failure is noted in the events."""
    folder = HERE.parent
    try:
        spec: ModuleSpec | None = importlib.util.spec_from_file_location(
            PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{folder} can't be imported")
        package: Any = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
        package.start(config, given)
    except Exception as error:  # noqa: BLE001 - the user's script must run whatever fails here
        why = f"{type(error).__name__}: {error}"
        note = {"event": "note", "t": None, "what": "starting the collector", "why": why}
        with suppress(OSError, KeyError, TypeError):
            events = Path(config["raw"], f"events-{os.getpid()}.jsonl")
            events.touch(0o600)
            with events.open("a") as file:
                file.write(json.dumps(note) + "\n")


main()
