"""What a user names as a run: a run folder, a diagnosis in JSON, or any pile of logs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from traceview.errors import NothingToAnalyse, UsageError

if TYPE_CHECKING:
    from traceview.compare import Side
    from traceview.rules.choice import Choice
    from traceview.run import Run

DIAGNOSIS = "diagnosis.json"
#: No diagnosis of ours comes near it.
MOST_BYTES = 256 << 20


def open_side(name: str, choice: Choice, *, refresh: bool = False) -> Side:
    """The run that ``name`` stands for, diagnosed by the rules of ``choice``.

    A JSON diagnosis is taken as it is: what it was made of may be gone.
    """
    from traceview.run import MANIFEST

    path = Path(name)
    if (path / MANIFEST).is_file():
        return _of_run(name, path, choice, refresh=refresh)
    if path.name == "report.html" and (path.parent / MANIFEST).is_file():
        return _of_run(name, path.parent, choice, refresh=refresh)
    if (path / DIAGNOSIS).is_file():
        return _of_json(name, path / DIAGNOSIS)
    if path.is_file() and path.suffix == ".json" and (data := _read_json(path)) is not None:
        return _of_data(name, data)
    return _of_logs(name, choice)


def _of_run(name: str, folder: Path, choice: Choice, *, refresh: bool) -> Side:
    from traceview.run import Run

    return diagnosed(name, Run.open(folder), choice, refresh=refresh)


def diagnosed(name: str, run: Run, choice: Choice, *, refresh: bool = False) -> Side:
    """An opened run, diagnosed."""
    from traceview.cli.pipeline import tables_of
    from traceview.compare import Side, cache_counts
    from traceview.diagnosis import diagnose, source_reader

    tables = tables_of(run, refresh=refresh)
    kind = "postmortem" if run.manifest.target_kind == "logs" else "run"
    read = source_reader(run, tables)
    return Side(name, kind, diagnose(run, tables, choice), read, cache_counts(tables))


def _of_json(name: str, path: Path) -> Side:
    data = _read_json(path)
    if data is None:
        fact = f"{path} is no diagnosis of traceview."
        raise NothingToAnalyse(fact, "Make it again with `traceview report RUN`.", slug="no-json")
    return _of_data(name, data)


def _of_data(name: str, data: dict[str, object]) -> Side:
    from traceview.compare import Side
    from traceview.diagnosis import from_json

    return Side(name, "diagnosis", from_json(data))


def _read_json(path: Path) -> dict[str, object] | None:
    """A JSON object with a verdict; None for anything else (a profiler trace, say)."""
    import json

    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and "verdict" in data else None


def _of_logs(name: str, choice: Choice) -> Side:
    """Anything else is read as a post-mortem, into a folder that this command takes away again."""
    from traceview.cli.postmortem import read_paths
    from traceview.reading.executors import Processes

    if not Path(name).exists() and "://" not in name and not any(c in name for c in "*?["):
        fact = f"There is no {name}."
        remedy = "Name a run folder, its diagnosis.json, or a folder or file of logs."
        raise UsageError(fact, remedy, slug="no-such-run")
    scratch = click.get_current_context().with_resource(TemporaryDirectory(prefix="traceview-"))
    folder = Path(scratch) / "run"
    folder.mkdir()
    run, _ = read_paths(folder, [name], Processes(None), resume=False)
    return diagnosed(name, run, choice)
