"""A run that is there already, in place of a script: its target runs again as it did."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.errors import NothingToAnalyse, UsageError

if TYPE_CHECKING:
    from traceview.cli.console import Console
    from traceview.collectors import CollectOptions
    from traceview.run import Run

#: Options that make no sense for a run folder that is there already.
_OF_A_NEW_RUN = ("out", "force", "warm", "no_baseline", "compare_outputs")


def run_folder(module: str | None, target: tuple[str, ...]) -> Path | None:
    """The run folder that is given in place of a script."""
    from traceview.run import MANIFEST

    if module is None and target and (Path(target[0]) / MANIFEST).is_file():
        return Path(target[0])
    return None


def run_of(
    module: str | None,
    target: tuple[str, ...],
    *,
    as_json: bool,
    console: Console,
    **given: Any,  # noqa: ANN401 (click's options)
) -> tuple[Run, CollectOptions]:
    """A new run of the script, or the one that is there; and how its target is run."""
    from traceview.cli.scripts import collect_options
    from traceview.collectors import CollectOptions, collect
    from traceview.collectors.child.secrets import MASK
    from traceview.run import Run

    folder = run_folder(module, target)
    if folder is None:
        options = collect_options(module, target, to_stderr=as_json, **given)
        # What has been compiled is not compiled again for the trials, which remove the cache.
        return collect(replace(options, keep_cache=True), console), options
    if len(target) > 1:
        fact = f"{folder} is a run folder, and {target[1]} follows it."
        remedy = "Its script runs with the arguments of that run; leave others out."
        raise UsageError(fact, remedy, slug="run-and-arguments")
    context, typed = click.get_current_context(), click.core.ParameterSource.COMMANDLINE
    own = {name for name in given if context.get_parameter_source(name) is typed}
    wrong = [each for each in context.command.params if each.name in own & set(_OF_A_NEW_RUN)]
    if wrong:
        fact = f"{wrong[0].opts[-1]} is for a new run, and {folder} is one already."
        raise UsageError(fact, "Leave it out, or give the script.", slug="not-a-new-run")
    run = Run.open(folder.absolute())
    manifest = run.manifest
    if manifest.target_kind == "logs" or not manifest.target:
        fact = f"{folder} was made from logs: it has no script to run."
        raise NothingToAnalyse(fact, "Give the script.", slug="no-script")
    if any(MASK in word for word in manifest.target):
        fact = f"{folder} has a mask in place of a secret among its script's arguments."
        remedy = "Give the script and its arguments instead of the run folder."
        raise UsageError(fact, remedy, slug="masked-arguments")
    known = {field.name for field in fields(CollectOptions)} - {"out", "args", "force"}
    kept = {name: value for name, value in manifest.options.items() if name in known}
    first = {
        "kind": manifest.target_kind,
        "target": manifest.target[0],
        "args": tuple(manifest.target[1:]),
        "python": manifest.python or None,
        "nproc": manifest.nproc,
        "quiet_stdout_to_stderr": as_json,
    }
    return run, CollectOptions(**{**kept, **first, **{name: given[name] for name in own}})


@contextlib.contextmanager
def inside(folder: str) -> Iterator[None]:
    """Work in ``folder``, where the script ran before; here, if it is gone."""
    before = Path.cwd()
    with contextlib.suppress(OSError):
        os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)
