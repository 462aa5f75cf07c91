"""Patches of the user's files: their own, to be tried, and accepted ones, written on request."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path, PurePath

from traceview.cli.again import run_folder
from traceview.collectors.child.patches import NotPatched, applied, file_of
from traceview.errors import NothingToAnalyse, RunFolderError, UsageError
from traceview.json_errors import NOT_JSON
from traceview.parse import load_or_parse
from traceview.run import USERS, Run, beside, write_whole
from traceview.trials import Remedy, from_json
from traceview.trials.model import RESULTS

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


def apply_trial(number: int, module: str | None, target: tuple[str, ...]) -> str:
    """Write the patch of a trial into the user's file; what was done, in a sentence."""
    folder = run_folder(module, target)
    if folder is None:
        fact = "--apply needs the run folder that holds the results."
        raise UsageError(fact, f"Use `traceview try --apply {number} RUN`.", slug="apply-no-run")
    run = Run.open(folder)
    try:
        data = json.loads((folder / RESULTS).read_bytes())
    except (OSError, *NOT_JSON) as error:
        fact = f"{folder} has no {RESULTS} that can be read."
        remedy = f"Run `traceview try {folder}` first."
        raise NothingToAnalyse(fact, remedy, slug="no-trials") from error
    trials = from_json(data).trials
    if number > len(trials):
        fact = f"{folder} has {len(trials)} trials, not {number}."
        raise UsageError(fact, "Give the number in front of an accepted trial.", slug="apply")
    trial = trials[number - 1]
    if trial.verdict != "accepted" or trial.patch is None:
        why = "it was not accepted" if trial.patch else "it changes settings, not a file"
        fact = f"Trial {number} ({trial.name}) has no patch to apply: {why}."
        remedy = "Paste the code of the recommendation, or give another number."
        raise UsageError(fact, remedy, slug="apply")
    try:
        changed, kept = apply(trial.patch, run)
    except OSError as error:
        fact = f"{error.filename or 'The file'} can't be changed ({error.strerror or error})."
        remedy = "Fix its permissions, or apply the patch by hand."
        raise RunFolderError(fact, remedy, slug="apply") from error
    return f"Wrote {trial.name} into {changed}; the old file is {kept}."


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
    if os.path.lexists(kept):
        fact = f"{kept} exists and was not replaced, so {path.name} was not changed."
        raise RunFolderError(fact, "Move it away first.", slug="orig")
    try:
        write_whole(kept, content, USERS)
        with beside(path, USERS) as file:
            file.write(new.encode())
            os.fchmod(file.fileno(), path.stat().st_mode)
    except OSError as error:
        fact = f"{path} could not be changed ({error.strerror or error})."
        raise RunFolderError(fact, "Apply the patch yourself.", slug="unwritable") from error
    return path, kept
