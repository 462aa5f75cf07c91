"""``traceview postmortem``: read the logs of a finished job and explain them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview import limits
from traceview.cli.console import Console
from traceview.cli.options import files, limited, reporting
from traceview.errors import NothingToAnalyse, UsageError
from traceview.memory import freed_at_once, kept_below

if TYPE_CHECKING:
    from traceview.inputs import Found
    from traceview.reading.executors import Executor
    from traceview.rules.choice import Choice
    from traceview.run import Run

DEFAULT_FOLDER = Path("traceview-postmortem")
_SCRATCH = "scratch"
_BEGUN = frozenset((_SCRATCH, "raw", ".gitignore"))
_READ = frozenset(("structured", "textlog", "stderr", "kineto", "chromium", "events"))


@click.command("postmortem")
@reporting
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help=f"Run folder (default: {DEFAULT_FOLDER}, or the next free name).",
)
@click.option("--resume", is_flag=True, help="Continue in that folder: read only new logs.")
@click.option("--strict", is_flag=True, help="Exit with 1 if anything could not be read.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Reader processes (default: one per CPU; 1 reads in this process).",
)
@click.option(
    "--scheduler",
    metavar="URL",
    help="Read on a running Dask cluster instead: tcp://HOST:8786. Its workers must see the logs "
    "and the run folder under the same paths.",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=files)
@click.pass_context
@limited
def postmortem_command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    out: Path | None,
    resume: bool,
    strict: bool,
    workers: int | None,
    scheduler: str | None,
    **reporting: Any,  # noqa: ANN401 (click's options)
) -> None:
    """Read every log at PATH and explain where compile time and stalls came from.

    PATH is a folder, a file, an archive, a glob pattern, a URL that fsspec opens, or - for stdin.
    Files are recognised by their content. `traceview report`, `query` and `tables` read the run
    folder that this makes.
    """
    freed_at_once()
    from traceview.cli.pipeline import Wanted, explain

    def asked() -> tuple[Choice, Executor]:
        from traceview.reading.executors import Dask, Processes, Serial

        choice = wanted.choice()
        if scheduler is not None and workers is not None:
            fact = "--workers and --scheduler can't be combined."
            remedy = "Leave --workers out: the cluster has its own."
            raise UsageError(fact, remedy, slug="two-executors")
        if scheduler is not None:
            return choice, Dask(scheduler)
        return choice, Serial() if workers == 1 else Processes(workers)

    wanted = Wanted(**reporting)
    # fail early if one is wrong
    early = asked() if wanted.select or wanted.ignore or scheduler else None
    folder = _folder(out, resume, ctx.with_resource(ExitStack()))
    with kept_below(limits.now.memory, folder / _SCRATCH):
        with _logs(folder, paths, resume) as found:  # reading starts before the large imports
            choice, executor = early or asked()
            run, damaged = _read(folder, paths, found, executor, resume)
        code = explain(run, wanted, choice, refresh=False)
    ctx.exit(1 if strict and damaged and not code else code)


def _folder(out: Path | None, resume: bool, held: ExitStack) -> Path:
    """The run folder: a new or empty one, or with ``--resume`` the existing one."""
    from traceview.collectors.output_folder import claimed, new_folder
    from traceview.run import Run

    wanted = (out or DEFAULT_FOLDER).absolute()
    there = {path.name for path in wanted.iterdir()} if resume and wanted.is_dir() else set()
    if there:
        # one that was killed may have begun no more than these
        begun = all(name in _BEGUN or name.endswith(".part") for name in there)
        if not begun and Run.open(wanted).manifest.target_kind != "logs":
            fact = f"{wanted} is the run folder of a script, not of a post-mortem."
            raise UsageError(fact, "Choose another folder with -o.", slug="not-a-postmortem")
        held.enter_context(claimed(wanted))
        return wanted
    return new_folder(wanted, Console(), held)


def read_paths(
    folder: Path, paths: Sequence[str], executor: Executor, *, resume: bool
) -> tuple[Run, bool]:
    """Find the logs and read them: the run, and whether anything could not be read."""
    with _logs(folder, paths, resume) as found:
        return _read(folder, paths, found, executor, resume)


@contextmanager
def _logs(folder: Path, paths: Sequence[str], resume: bool) -> Iterator[Found]:
    """The logs at ``paths``; archives are unpacked into ``folder``. NothingToAnalyse without a log.

    If there is a single structured log that can't have been read before, another process starts
    cutting it meanwhile. A folder that stays empty is removed.
    """
    from traceview import inputs
    from traceview.parse.cutting import cutting_begun

    scratch = folder / _SCRATCH
    scratch.mkdir(exist_ok=True)
    try:
        found = inputs.find(paths, scratch)
        if not any(source.kind in _READ for source in found.sources):
            named = ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
            remedy = (
                "Give a TORCH_TRACE folder, text logs of TORCH_LOGS, saved stderr, or profiler "
                "traces."
            )
            if found.sources:
                count = len(found.sources)
                files = "The only file" if count == 1 else f"None of the {count} files"
                fact = f"{files} at {named} {'is not' if count == 1 else 'is'} a log of torch."
                raise NothingToAnalyse(fact, remedy, slug="nothing-recognised")
            unread = [(item.name, item.what) for item in found.damaged]
            unread += [(item.name, item.reason) for item in found.skipped]
            reasons = "; ".join(f"{name}: {reason}" for name, reason in unread[:3])
            fact = f"There is nothing to read at {named}{f' ({reasons})' if reasons else ''}."
            raise NothingToAnalyse(fact, remedy, slug="nothing-there")
        first, *others = found.sources
        alone = not others and not resume and first.kind == "structured"
        with cutting_begun(first.path) if alone and first.path else nullcontext():
            yield found
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def _read(
    folder: Path, paths: Sequence[str], found: Found, executor: Executor, resume: bool
) -> tuple[Run, bool]:
    from traceview import __version__
    from traceview.collectors.child.secrets import masked_arguments
    from traceview.reading import read_all
    from traceview.run import Manifest, Run

    console = Console()
    manifest = Manifest(
        traceview=__version__,
        created_us=time.time() * 1e6,
        target=masked_arguments(paths),
        target_kind="logs",
        cwd=str(Path.cwd()),
    )
    run = Run.create(folder, manifest)

    def progress(done: int, of: int) -> None:
        console.progress(f"{done} of {of} logs read")

    try:
        parts = read_all(run, found, executor, resume=resume, progress=progress)
    finally:
        console.progress(None)
    return run, bool(found.damaged) or any(part.damaged for part in parts)
