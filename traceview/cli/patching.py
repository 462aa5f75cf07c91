"""Writing an accepted patch into the user's file, on request: never into one that has changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from traceview.collectors.child.patches import NotPatched, applied, file_of
from traceview.errors import RunFolderError, UsageError
from traceview.parse import load_or_parse
from traceview.run import Run

KEPT = ".orig"
_AGAIN = "Run `traceview try` on the present script."


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
