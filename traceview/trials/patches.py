"""Writing an accepted patch into the user's file, on request: never into one that has changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from traceview.errors import RunFolderError, UsageError
from traceview.parse import load_or_parse
from traceview.run import Run

KEPT = ".orig"
_NAME = re.compile(r"^\+\+\+ ([^\n\t]+)", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_AGAIN = "Run `traceview try` on the present script."


def apply(patch: str, run: Run) -> tuple[Path, Path]:
    """Write ``patch`` into its file; the file, and the copy of the old one next to it.

    UsageError if the file is no longer the one that was measured, RunFolderError if there is such a
    copy already.
    """
    name = _NAME.search(patch)
    path = Path(run.manifest.cwd) / (name[1] if name else "")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() not in _digests(run, path):
        fact = f"{path} is not the file that was measured: it has changed since."
        raise UsageError(fact, _AGAIN, slug="changed")
    new = _patched(content.decode(), patch)
    if new is None:
        raise UsageError(f"The patch does not fit {path}.", _AGAIN, slug="no-fit")
    kept = path.with_name(path.name + KEPT)
    try:
        with kept.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        fact = f"{kept} exists and was not replaced, so {path.name} was not changed."
        raise RunFolderError(fact, "Move it away first.", slug="orig") from error
    scratch = path.with_name(f".{path.name}.part")
    scratch.write_bytes(new.encode())
    scratch.chmod(path.stat().st_mode)
    scratch.replace(path)
    return path, kept


def _digests(run: Run, path: Path) -> Iterator[str]:
    """What the run's copies say the file was."""
    rows = load_or_parse(run)["sources"].select("file", "sha256").iter_rows()
    folder = Path(run.manifest.cwd)
    return (digest for file, digest in rows if file and (folder / file).resolve() == path.resolve())


def _patched(text: str, patch: str) -> str | None:
    """``text`` with the hunks of a unified diff; None where a line is not the one expected."""
    old = _lines(text)
    new: list[str] = []
    at = 0
    body, last = False, ""
    for row in _lines(patch):
        hunk = _HUNK.match(row)
        if hunk:
            first = int(hunk[1]) - (hunk[2] != "0")
            new += old[at:first]
            at, body = first, True
        elif row.startswith("\\"):  # the line before it ends without a newline
            if new and new[-1].endswith("\n") and last == "+":
                new[-1] = new[-1][:-1]
        elif body and row[:1] in ("+", " ", "-"):
            last, line = row[0], row[1:]
            if last != "+":
                if at >= len(old) or old[at].rstrip("\n") != line.rstrip("\n"):
                    return None
                at += 1
            if last != "-":
                new.append(old[at - 1] if last == " " else line)
    return "".join([*new, *old[at:]]) if body else None


def _lines(text: str) -> list[str]:
    """Lines as Python and ``patch`` count them: form feeds end none."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]
