"""``traceview timeline``: compiling and steps on one time axis, for Perfetto."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import click


@click.command("timeline")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE",
    help="The file to write; packed if its name ends in .gz.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path, out: Path, force: bool) -> None:
    """Write the compile timeline of the run folder RUN for ui.perfetto.dev or chrome://tracing.

    Every phase of every compile, in all processes and ranks, beside the steps, timed blocks, calls
    and profiler windows of the run.
    """
    from traceview.cli.pipeline import tables_of
    from traceview.derive.compiler.trace import chrome_trace
    from traceview.errors import NothingToAnalyse
    from traceview.run import Run

    trace = chrome_trace(tables_of(Run.open(run)))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    if not spans:
        fact = f"Nothing in {run} has a time: there is no timeline to write."
        remedy = "Record a run with `traceview diagnose SCRIPT`."
        raise NothingToAnalyse(fact, remedy, slug="no-times")
    _write(out, json.dumps(trace, sort_keys=True, allow_nan=False).encode(), force=force)
    processes = len({event["pid"] for event in spans})
    click.echo(
        f"Wrote {len(spans):,} spans of {processes} process{'es' * (processes > 1)} to {out}; "
        "open it in https://ui.perfetto.dev."
    )


def _write(out: Path, data: bytes, *, force: bool) -> None:
    """``data`` as file ``out``; RunFolderError where that can't be, or something stands there."""
    from traceview.errors import RunFolderError

    try:
        with out.open("wb" if force else "xb") as file:
            file.write(gzip.compress(data, mtime=0) if out.name.endswith(".gz") else data)
    except FileExistsError as error:
        fact = f"{out} is there already and was left as it is."
        raise RunFolderError(fact, "Name another file, or say --force.", slug="exists") from error
    except OSError as error:
        fact = f"{out} can't be written ({error.strerror})."
        raise RunFolderError(fact, "Name another file with -o FILE.", slug="unwritable") from error
