"""Copies of the user's own files that the run names, once each."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .frames import Frames
from .recorder import Recorder

MAX_BYTES = 2_000_000
MAX_FILES = 200


class Sources:
    """Copies to ``raw/sources/SHA16-NAME`` under the run folder, and says so in the events."""

    def __init__(self, run: Path, recorder: Recorder, frames: Frames) -> None:
        self._run = run
        self._recorder = recorder
        self._frames = frames
        self._seen: set[str] = set()

    def keep(self, file: str | None) -> None:
        """Copy ``file`` if it is the user's, a readable file of at most 2 MB, and new here."""
        if not file or file in self._seen or len(self._seen) >= MAX_FILES:
            return
        if not self._frames.is_user(file):
            return
        self._seen.add(file)
        path = Path(file)
        try:
            if not path.is_file() or path.stat().st_size > MAX_BYTES:
                return
            data = path.read_bytes()
            sha256 = hashlib.sha256(data).hexdigest()
            copy = f"raw/sources/{sha256[:16]}-{path.name}"
            target = self._run / copy
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_bytes(data)
        except OSError as error:
            self._recorder.note(f"no copy of {file}", error)
            return
        self._recorder.write("source", file=file, copy=copy, sha256=sha256)
