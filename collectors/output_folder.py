"""Where a run is written. Only files that traceview wrote are ever deleted or overwritten."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from traceview.collectors.options import CollectOptions, Console
from traceview.errors import RunFolderError
from traceview.run import MANIFEST, PRIVATE

NEEDED_MB = 100
OTHER_DISK = "Free some disk space, or choose a folder on another disk with -o DIR."
_OURS = (
    MANIFEST,
    "raw",
    "cache",
    "tables",
    "tlparse",
    "accuracy",
    "diagnosis.json",
    "report.html",
    "report.md",
    "trials.json",
    "trials.html",
    "trials.md",
    "trials.csv",
    "ticket.md",
    "ticket.zip",
)
_ANOTHER = "Choose another folder with -o DIR."


def default_name(target: str, *, module: bool = False) -> str:
    """``traceview-train`` of a script ``src/train.py``, or of a module ``train``."""
    stem = target if module else Path(target).stem
    return "traceview-" + (re.sub(r"[^\w.-]+", "_", stem).strip(".") or "run")


def output_folder(options: CollectOptions, console: Console, held: ExitStack) -> Path:
    """A new or empty folder, made, and ours while it is ``held``; RunFolderError if there is none.

    A folder that is there already is used if it is empty, cleared of an earlier run of ours with
    ``--force``, and otherwise left alone: the next free name is taken.
    """
    default = default_name(options.target, module=options.kind == "module")
    wanted = Path(os.path.abspath(options.out or default))  # noqa: PTH100
    try:
        if options.force and os.path.lexists(wanted):
            held.enter_context(claimed(wanted))
            clear_run(wanted)
            folder = wanted
        else:
            folder = new_folder(wanted, console, held)
        free_mb = shutil.disk_usage(folder).free // 1_000_000
    except OSError as error:
        raise _not_made(wanted, error) from error
    if free_mb < NEEDED_MB:
        with suppress(OSError):
            folder.rmdir()
        # torch would fail in the middle of the script: its caches and logs go into this folder.
        fact = f"A run needs {NEEDED_MB} MB of disk space; {folder} has {free_mb} MB free."
        raise RunFolderError(fact, OTHER_DISK, slug="disk-full")
    return folder


def clear_run(folder: Path) -> None:
    """Remove an earlier run of ours from ``folder``; RunFolderError if it holds none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        is_run = isinstance(manifest, dict) and manifest.keys() >= {"format", "traceview", "passes"}
    except (OSError, ValueError, RecursionError):
        is_run = False
    if not folder.is_dir() or not (is_run or not any(folder.iterdir())):
        fact = f"{folder} exists and is not a run folder of traceview, so nothing was deleted."
        raise RunFolderError(fact, _ANOTHER, slug="not-ours")
    for name in _OURS:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """No other process writes a run there meanwhile; RunFolderError where one does.

    It ends with the process, however that does. A file system without locks is used as it is.
    """
    with ExitStack() as opened:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            fact = f"Another traceview process is writing to {folder}."
            remedy = f"Wait for it to end. {_ANOTHER}"
            raise RunFolderError(fact, remedy, slug="in-use") from error
        except OSError:
            pass
        yield


def new_folder(wanted: Path, console: Console, held: ExitStack) -> Path:
    """``wanted`` if it is new or empty, else with -2, -3, …; RunFolderError if it can't be made.

    Claimed while it is ``held``, so that two runs at once never share one.
    """
    folder, number = wanted, 1
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        while True:
            made = number == 1 and folder.is_dir()  # an empty one will do
            with suppress(FileExistsError):
                folder.mkdir(PRIVATE)
                made = True
            with suppress(RunFolderError), ExitStack() as claim:
                if made:
                    claim.enter_context(claimed(folder))
                    if not any(folder.iterdir()):
                        held.push(claim.pop_all())
                        break
            number += 1
            folder = wanted.with_name(f"{wanted.name}-{number}")
    except OSError as error:
        raise _not_made(wanted, error) from error
    if folder != wanted:
        console.say(f"{wanted.name} already exists, so this run is written to {folder.name}.")
    return folder


def _not_made(wanted: Path, error: OSError) -> RunFolderError:
    fact = f"Can't create the run folder {wanted} ({error.strerror or error})."
    return RunFolderError(fact, _ANOTHER, slug="unwritable")
