"""``traceview accuracy``: of a script, of training steps, and of recordings of two processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.cli.options import PASS_ON, TargetCommand, comparing, in_seconds, targeting
from traceview.errors import NothingToAnalyse, UsageError

if TYPE_CHECKING:
    from traceview.compare.recorded import Recording
    from traceview.run import Ending, Run

RECORD_MB = 64
#: Of one run folder: one for each rank.
_MOST_RECORDINGS = 1024
_CODES = {"agree": 0, "differ": 1, "not_compared": 4}
Pair = tuple["Recording", "Recording", "Recording | None", str, str]


@click.command("accuracy", cls=TargetCommand, context_settings=PASS_ON)
@comparing
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the answer as JSON; a script's own stdout goes to stderr.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="Follow what differs to the operator and what the compiler does to it; write a script.",
)
@click.option(
    "--budget",
    default="4m",
    show_default=True,
    callback=in_seconds,
    metavar="TIME",
    help="Time that --bisect may take, such as 90s, 10m or 1h.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    help="Make N optimizer steps compiled, and N in eager, and compare losses and weights.",
)
@click.option(
    "--record-mb",
    type=click.IntRange(0, 10_000),
    default=RECORD_MB,
    show_default=True,
    metavar="MB",
    help="Size of the recording, per rank, for `traceview accuracy A B`; 0: none.",
)
@targeting
def accuracy_command(
    as_json: bool,
    bisect: bool,
    budget: float,
    steps: int | None,
    **options: Any,  # noqa: ANN401 (click's options)
) -> None:
    """Run SCRIPT and check whether compiled results and gradients are eager's.

    The script stops when compiling has come to rest; one call of each compiled callable is then
    run again on copies, and its outputs, gradients, in-place writes and buffers are compared with
    eager's. In place of SCRIPT, two run folders, or two recordings in their accuracy folders, are
    compared with each other. Exit codes: 0 (they agree), 1 (they differ), 2 (usage error), 3 (the
    script failed), 4 (nothing to compare), 130 (interrupted).

    \b
    traceview accuracy -o A train.py
    traceview accuracy A B
    """
    from traceview.run import MANIFEST

    if steps is not None and bisect:
        fact = "--bisect and --steps can't be combined."
        remedy = "Use --steps first; --bisect follows what one call has wrong."
        raise UsageError(fact, remedy, slug="steps-and-bisect")
    # Run folders or recordings that are given in place of a script.
    paths = [Path(each) for each in options["target"]] if options["module"] is None else []
    known = [path.suffix == ".jsonl" or (path / MANIFEST).is_file() for path in paths]
    if not any(known[:1]):
        paths = []
    elif len(paths) > 2 or not all(known):
        fact = f"{paths[0]} is a run, and {' '.join(map(str, paths[1:]))} follows it."
        remedy = "Name two runs, or one with several ranks."
        raise UsageError(fact, remedy, slug="not-two-runs")
    if paths:
        answer = _between(_pairs([list(_recordings(path)) for path in paths]), paths)
        code = _told(answer, as_json)
    elif steps is not None:
        from traceview.cli.console import Console
        from traceview.cli.scripts import collect_options
        from traceview.collectors.trials import record_steps

        options["record_mb"] = options["record_mb"] or RECORD_MB
        given = collect_options(to_stderr=as_json, **options)
        run, ending = record_steps(given, Console(), steps)
        code = 0
        if ending.is_well:
            answer = _between(_pairs([list(_recordings(run.folder))]), [run.folder])
            code = _told(answer, as_json)
        code = _ended(run, ending, code, as_json)
    else:
        code = _of_script(as_json, budget if bisect else 0.0, **options)
    click.get_current_context().exit(code)


def _of_script(as_json: bool, bisect_s: float, **options: Any) -> int:  # noqa: ANN401
    """Run it, compare compiled with eager and ranks with the first; the exit code."""
    from traceview.cli.console import Console
    from traceview.cli.pipeline import tables_of
    from traceview.cli.scripts import collected
    from traceview.contracts import text_of
    from traceview.diagnosis.step import accuracy
    from traceview.reports.phrases import accuracy_answer

    run = collected(
        to_stderr=as_json,
        no_baseline=True,
        steps=1,
        blocks=1,
        profile=False,
        compare_outputs=True,
        bisect_s=bisect_s,
        tlparse=False,
        **options,
    )
    Console().say("reading the logs")
    tables = tables_of(run, refresh=True)
    found = list(_recordings(run.folder)) if options["nproc"] > 1 else []
    if len(found) > 1:
        code = _told(_between(_pairs([found]), [run.folder]), as_json)
    else:
        outputs, answer = accuracy(tables)
        for named in (*answer["differences"], *answer["faults"]):
            named["script"] = named["script"] and str(run.folder / named["script"])
        click.echo(text_of(answer) if as_json else accuracy_answer(outputs, answer))
        code = _CODES[answer["verdict"]]
    return _ended(run, run.manifest.passes[0].ending, code, as_json)


def _ended(run: Run, ending: Ending, code: int, as_json: bool) -> int:
    """Say where the run is; ``code`` if the script ended well, else the code for its end."""
    from traceview.cli.scripts import INTERRUPTED

    click.echo(f"run folder: {run.folder}", err=as_json)
    if ending.kind == "interrupted":
        return INTERRUPTED
    if ending.is_well:
        return code
    click.echo("traceview: The script failed; its error is above.", err=True)
    return 3


def _told(answer: dict[str, Any], as_json: bool) -> int:
    """Print the answer to a comparison of recordings; its exit code."""
    from traceview.contracts import text_of
    from traceview.reports.phrases import recordings_answer

    click.echo(text_of(answer) if as_json else recordings_answer(answer))
    return _CODES[answer["verdict"]]


# -- recordings ------------------------------------------------------------------------------------


def _recordings(path: Path) -> Iterator[Recording]:
    """The recordings of a run folder, or the one in a file."""
    from traceview.collectors.child.recording import FOLDER
    from traceview.compare.recorded import read

    if not path.is_dir():
        yield read(path)
        return
    files = sorted((path / FOLDER).glob("*.jsonl"))[:_MOST_RECORDINGS]
    if not files:
        fact = f"{path} has no recording of numbers."
        remedy = "Make one with `traceview accuracy SCRIPT`."
        raise NothingToAnalyse(fact, remedy, slug="no-recording")
    for file in files:
        yield read(file)


def _pairs(sides: list[list[Recording]]) -> list[Pair]:
    """(A, B, noise, name of A, name of B): what is compared with what."""
    calls, steps = (
        [
            {
                each.environment.stance or str(each.environment.rank or 0): each
                for each in side
                if each.environment.what == what
            }
            for side in sides
        ]
        for what in ("calls", "steps")
    )
    noise = next((each for side in steps for key, each in side.items() if key == "nudged"), None)
    pairs: list[Pair] = []
    if len(sides) == 1:
        ranks = [(f"rank {name}", each) for name, each in calls[0].items()]
        pairs += [(ranks[0][1], each, None, ranks[0][0], name) for name, each in ranks[1:]]
        if steps[0].keys() >= {"eager", "compiled"}:
            pairs.append((steps[0]["eager"], steps[0]["compiled"], noise, "eager", "compiled"))
    else:
        for a, b in (calls, steps):
            same = [key for key in a if key in b and key != "nudged"]
            keys = [(key, key) for key in same] or [*zip(a, b, strict=False)][:1]
            pairs += [(a[x], b[y], noise, str(x), str(y)) for x, y in keys]
    if not pairs:
        fact = "There are no two recordings to compare."
        remedy = "Name two runs of `traceview accuracy SCRIPT`, or one with several ranks."
        raise NothingToAnalyse(fact, remedy, slug="one-recording")
    return pairs


def _label(path: Path, other: Path, recording: Recording) -> str:
    """``A``, ``A, rank 1``, ``A, eager``; ``here/A`` where the other one's name is the same."""
    environment = recording.environment
    rank = None if environment.rank is None else f"rank {environment.rank}"
    named = str(path) if path.name in ("", other.name) else path.name
    return ", ".join(filter(None, (named, rank, environment.stance)))


def _between(pairs: list[Pair], paths: list[Path]) -> dict[str, Any]:
    """The answer of ``traceview accuracy A B`` (docs/accuracy.md)."""
    from traceview.compare.recordings import compare, environments

    runs = [_faults_and_choices(path) for path in paths]
    answer: dict[str, Any] = {"format": 1, "verdict": "not_compared", "pairs": [], "faults": []}
    lists: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("differences", "not_compared", "environments", "callables")
    }
    for number, (a, b, noise, *sides) in enumerate(pairs):
        names = list(map(str, sides))
        if len(paths) == 2:
            here, there = paths
            names = [_label(here, there, a), _label(there, here, b)]
        answer["pairs"].append({"a": names[0], "b": names[1]})
        for each, (_, choices) in zip((a, b), (runs[0], runs[-1]), strict=True):
            each.environment.settings.update(choices.get(each.environment.rank or 0, {}))
        found = compare(a, b, noise)
        for difference in found.differences:
            for side, (faults, _) in zip("AB", (runs[0], runs[-1]), strict=True):
                if f"compiled of {side}" in (difference["sides"] or ""):
                    _name_operator(difference, faults, answer["faults"], side)
        for name, rows in (*vars(found).items(), ("environments", environments(a, b))):
            lists[name] += [row | {"pair": number} for row in rows]
    compared = any(each["compared"] for each in lists["callables"])
    verdict = "differ" if lists["differences"] else "agree" if compared else "not_compared"
    return answer | lists | {"verdict": verdict}


def _faults_and_choices(
    path: Path,
) -> tuple[list[dict[str, Any]], dict[int, dict[str, str]]]:
    """What a run's --bisect found, and by rank what autotuning chose."""
    from traceview.cli.pipeline import tables_of
    from traceview.diagnosis.step import accuracy
    from traceview.run import Run

    if not path.is_dir() or not (run := Run.open(path)).manifest.passes:
        return [], {}
    tables = tables_of(run)
    choices: dict[int, dict[str, str]] = {}
    for row in tables["autotune_choices"].iter_rows(named=True):
        if row["is_best"]:
            name = f"autotuning of {row['op']} {row['shapes']} {row['dtypes']}"
            choices.setdefault(row["rank"] or 0, {})[name] = row["choice"]
    return accuracy(tables)[1]["faults"], choices


def _name_operator(
    difference: dict[str, Any],
    faults: list[dict[str, Any]],
    named: list[dict[str, Any]],
    side: str,
) -> None:
    """What the run of a side was followed to explains what its compiled code has wrong."""
    for fault in faults:
        if fault["callable"] == difference["callable"] and fault["operator"]:
            difference["operator"] = fault["operator"]
            difference["direction"] = fault["graph"]
            difference["location"] = fault["location"] or difference["location"]
            if {**fault, "side": side} not in named:
                named.append({**fault, "side": side})
