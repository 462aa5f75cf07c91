"""Whose file it is: the user's, torch's, a library's, or ours.

Stacks of the user's frames, and copies of the user's files that the run names.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from .recorder import Recorder, write_whole

OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - as co_filename is
MAX_FRAMES = 64
_CELL = "<ipython-input-"  # what IPython calls a cell's code on a terminal
_NOTEBOOK_CELL = re.compile(r"(.+\.ipynb cell )\d+")
_INSTALLED = f"{os.sep}site-packages{os.sep}"
MAX_BYTES = 2_000_000  # of a file that is copied
MAX_FILES = 200


class Frames:
    """Classifies files, given where torch lies, which folder is the script's, and the run's own.

    The run folder holds the compile cache, and generated code in it belongs to none of these.
    """

    def __init__(
        self, torch_file: str | None, script_root: str | None, run: str | None = None
    ) -> None:
        torch = os.path.dirname(os.path.abspath(torch_file)) + os.sep if torch_file else None  # noqa: PTH100, PTH120
        self._torch = torch or OURS
        self._generated = os.path.join(run, "cache", "") if run else OURS  # noqa: PTH118
        root = os.path.join(os.path.abspath(script_root), "") if script_root else None  # noqa: PTH100, PTH118
        # An installed package that ``-m`` started may run the user's code as ``__main__`` (IPython
        # does). One whose own module is ``__main__`` is the script.
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        own = root is None or (main is not None and os.path.abspath(main).startswith(root))  # noqa: PTH100
        self._root = root if own or _INSTALLED not in (root or "") else None
        paths = sysconfig.get_paths()
        self._stdlib = tuple({paths["stdlib"] + os.sep, paths["platstdlib"] + os.sep})

    def is_torch(self, file: str) -> bool:
        """Whether ``file`` is part of the installed torch."""
        return file.startswith(self._torch)

    def is_user(self, file: str) -> bool:
        """Whether ``file`` is the user's own: no library's, no generated one, none of ours."""
        if file.startswith(("<", OURS, self._torch, self._generated)):
            return file in ("<stdin>", "<string>") or file.startswith(_CELL)
        in_root = self._root is not None and file.startswith(self._root)
        shown = file[len(self._root or "") :] if in_root else file
        if _INSTALLED in os.sep + shown or "dist-packages" in shown:
            return False
        return in_root or not file.startswith(self._stdlib)

    def stack(self, frame: FrameType) -> list[dict[str, Any]]:
        """The user's stack frames above ``frame``, outermost first."""
        users = (each for each in outward(frame) if self.is_user(each.f_code.co_filename))
        return [_entry(each.f_code, each.f_lineno) for each in islice(users, MAX_FRAMES)][::-1]

    def call_site(self, frame: FrameType) -> dict[str, Any] | None:
        """The nearest stack frame of the user's; else the nearest outside torch and us."""
        outside = None
        for each in outward(frame):
            file = each.f_code.co_filename
            if self.is_user(file):
                return _entry(each.f_code, each.f_lineno)
            if outside is None and not self.is_torch(file) and not file.startswith(OURS):
                outside = _entry(each.f_code, each.f_lineno)
        return outside

    def traceback(self, tb: TracebackType | None) -> list[dict[str, Any]]:
        """The user's stack frames of a traceback, outermost first; the last ones of many."""
        walked = [_entry(frame.f_code, line or 0) for frame, line in traceback.walk_tb(tb)]
        return [entry for entry in walked if self.is_user(entry["file"])][-MAX_FRAMES:]


def outward(frame: FrameType | None) -> Iterator[FrameType]:
    """``frame`` and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _entry(code: CodeType, line: int) -> dict[str, Any]:
    return {"file": code.co_filename, "line": line, "function": code.co_name}


class Sources:
    """Copies to ``raw/sources/SHA16-NAME`` under the run folder, each with a ``source`` event."""

    def __init__(self, run: Path, recorder: Recorder, frames: Frames) -> None:
        self._run = run
        self._recorder = recorder
        self._frames = frames
        self._seen: set[str] = set()

    def keep(self, file: str | None) -> None:
        """Copy ``file`` if it is the user's, a readable file of at most 2 MB, and new here.

        A notebook's cells are kept together: what one does not do, another may.
        """
        cell = _NOTEBOOK_CELL.fullmatch(file or "")
        cells = [name for name in list(linecache.cache) if cell and name.startswith(cell[1])]
        for each in cells or filter(None, [file]):
            self._keep(each)

    def _keep(self, file: str | None) -> None:
        if not file or file in self._seen or len(self._seen) >= MAX_FILES:
            return
        if not self._frames.is_user(file):
            return
        self._seen.add(file)
        path = Path(file)
        try:
            if path.is_file():
                data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
            else:  # the code of a cell, of a notebook or of IPython
                data = "".join(linecache.getlines(file)).encode(errors="replace")
            if not data or len(data) > MAX_BYTES:
                return
            sha256 = hashlib.sha256(data).hexdigest()
            name = path.name if path.is_file() else re.sub(r"[^\w.-]+", "-", path.name)
            copy = f"raw/sources/{sha256[:16]}-{name}"
            target = self._run / copy
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                write_whole(target, data)
        except OSError as error:
            self._recorder.note(f"copying {file}", error)
            return
        self._recorder.write("source", file=file, copy=copy, sha256=sha256)
