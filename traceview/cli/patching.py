"""Patches of the user's files: their own, to be tried, and accepted ones, written on request."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePath

from traceview.collectors.child.patches import NotPatched, applied, file_of
from traceview.errors import RunFolderError, UsageError
from traceview.parse import load_or_parse
from traceview.run import Run
from traceview.trials import Remedy

KEPT = ".orig"
_HEADER = re.compile(r"^--- (?P<name>[^\t\n]+).*\n\+\+\+ .*\n", re.MULTILINE)
_AGAIN = "Run `traceview try` on the present script."


def own_patch(path: Path) -> Remedy:
    """A diff that the user wrote; UsageError if it does not fit a file that is here."""
    try:
        diff = path.read_text(encoding="utf-8")
        first, *others = _HEADER.finditer(diff)
        name = PurePath(first["name"])
        # git writes a/NAME.
        file = Path(*name.parts[1:]) if name.parts[:1] == ("a",) else Path(name)
        file = file.absolute()
        if others:
            raise NotPatched("it changes several files")
        text = f"--- {file}\n+++ {file}\n{diff[first.end() :]}"
        applied(file.read_bytes().decode("utf-8"), text)
    except (NotPatched, OSError, ValueError) as why:
        said = why.strerror if isinstance(why, OSError) else str(why)
        if not isinstance(why, (NotPatched, OSError)):
            said = "it is no unified diff"
        fact = f"{path} can't be tried: {said}."
        raise UsageError(fact, "Give a unified diff of one file.", slug="patch") from why
    return Remedy(f"patch {path.name}", patch=text)


def apply(patch: str, run: Run) -> tuple[Path, Path]:
    """Write ``patch`` into its file; the file, and the copy of the old one next to it.

    UsageError if the file is no longer the one that was measured, RunFolderError if there is such a
    copy already.
    """
    path = Path(run.manifest.cwd) / file_of(patch)
    content = path.read_bytes()
    copies = load_or_parse(run)["sources"].select("file", "sha256").iter_rows()
    folder, own = Path(run.manifest.cwd), path.resolve()
    known = {digest for file, digest in copies if file and (folder / file).resolve() == own}
    if hashlib.sha256(content).hexdigest() not in known:
        fact = f"{path} is not the file that was measured: it has changed since."
        raise UsageError(fact, _AGAIN, slug="changed")
    try:
        new = applied(content.decode(), patch)
    except NotPatched as why:
        raise UsageError(f"The patch does not fit {path}: {why}.", _AGAIN, slug="no-fit") from why
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
