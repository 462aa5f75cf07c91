"""The events of a trials process (docs/run-folder.md), read into what each trial measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from traceview.derive.figures import PairedRatio, ratio_of_pairs
from traceview.derive.pairs import Pair, Stances, paired, per_step_ms
from traceview.json_errors import NOT_JSON
from traceview.parse.collected import table_of
from traceview.parse.collected.events import Event, Process, read_processes
from traceview.parse.damage import Damage
from traceview.run import TICKS
from traceview.trials.model import Baseline

#: What the blocks of a trial are called.
TRIAL = "trial"
State = Literal["measured", "failed", "not_applicable", "unfinished"]


class Ended(msgspec.Struct, frozen=True):
    """One ``trial`` event."""

    name: str
    state: State
    why: str | None = None
    compile_s: float | None = None
    compiles: int | None = None
    graphs: int | None = None
    graph_breaks: int | None = None
    peak_bytes: int | None = None
    baseline_peak_bytes: int | None = None


class Outputs(msgspec.Struct, frozen=True):
    """Whether a trial's outputs and gradients agree with eager's, and what to say of it.

    ``agree`` is None where none could be compared. Where what runs without the trial differs from
    eager just as well, the trial has changed nothing.
    """

    agree: bool | None = None
    why: str | None = None


class Measured(msgspec.Struct, frozen=True):
    """What one process says of one trial."""

    ended: Ended
    ratio: PairedRatio | None
    pairs: int
    clock: str | None
    outputs: Outputs


class Apart(msgspec.Struct, frozen=True):
    """What a process measured that ran one way all the time.

    ``step_ms``: the median of its blocks, which are calls of ``anchor``; None: it ended before,
    ``error`` if by an exception. ``loops``: (milliseconds of an iteration, how many) by loop of the
    script.
    """

    step_ms: float | None = None
    anchor: str | None = None
    loops: dict[str, tuple[float, int]] = {}
    clock: str | None = None
    compile_s: float | None = None
    error: str | None = None

    @property
    def timed(self) -> bool:
        """Whether anything of it was."""
        return self.step_ms is not None or bool(self.loops)


def read_apart(raw: Path) -> Apart:
    """The process with the raw folder ``raw``; of several ranks the first one."""
    loops = _loops(raw / TICKS)
    processes = read_processes(raw, raw.name, Damage())
    main = min(
        (process for process in processes if process.of("first_call") or process.of("error")),
        key=lambda process: process.rank or 0,
        default=None,
    )
    if main is None:
        return Apart(loops=loops)
    names = {event.get("region_id"): event.get("name") for event in main.of("region")}
    head = {"pass": "trials", "rank": main.rank, "pid": main.pid}
    rows = table_of("blocks", ({**block, **head} for block in main.of("block"))).to_dicts()
    by_anchor: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        if per_step_ms(row) is not None and not row["compiles_inside"]:
            by_anchor.setdefault(row["anchor_region_id"], []).append(row)
    longest = max(
        by_anchor.values(), key=lambda own: sum(r["duration_ms"] for r in own), default=[]
    )
    compiles = [_number(event, "duration_ms") for event in main.of("compile")]
    error = next(iter(main.of("error")), None)
    return Apart(
        step_ms=median(ms for row in longest if (ms := per_step_ms(row))) if longest else None,
        anchor=names.get(longest[0]["anchor_region_id"]) if longest else None,
        loops=loops,
        clock=longest[0]["clock"] if longest else None,
        compile_s=sum(compiles) / 1e3 if compiles else None,
        error=f"{error.get('type')}: {error.get('message')}" if error else None,
    )


def _loops(file: Path) -> dict[str, tuple[float, int]]:
    try:
        data = json.loads(file.read_bytes())
        rows = {name: (row["ms"], row["count"]) for name, row in data.items()}
        return msgspec.convert(rows, dict[str, tuple[float, int]])
    except (OSError, *NOT_JSON, msgspec.ValidationError, AttributeError, KeyError, TypeError):
        return {}


def read_trials(raw: Path, baseline: Baseline) -> dict[str, Measured]:
    """Name → what the process with the raw folder ``raw`` measured of each trial that it ended.

    Of several ranks the first one counts.
    """
    processes = read_processes(raw, raw.name, Damage())
    reporting = [process for process in processes if process.of("trial")]
    main = min(reporting, key=lambda process: process.rank or 0, default=None)
    if main is None:
        return {}
    blocks = _by_trial(main.of("block"))
    checks, compared = _by_trial(main.of("output_check")), main.of("output_trial")
    # Where the script's own compiled code differs from eager, a remedy is not to blame for it; a
    # rung of the ladder is.
    usual = [row for row in main.of("output_check") if row.get("run") == "compiled"]
    usual = usual if baseline == "compiled" else []
    found = {}
    for event in main.of("trial"):
        try:
            ended = msgspec.convert(event, Ended)
        except msgspec.ValidationError:
            continue  # as if it had not come: the trial is tried again
        name = ended.name
        pairs, ratio = _timed(main, blocks.get(name, ()), (baseline, TRIAL))
        found[name] = Measured(
            ended,
            ratio,
            len(pairs),
            pairs[0].clock if pairs else None,
            _outputs((*usual, *checks.get(name, ())), compared),
        )
    return found


def _by_trial(events: Iterable[Event]) -> Mapping[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(name := event.get(TRIAL), str):
            found.setdefault(name, []).append(event)
    return found


def _timed(
    process: Process, blocks: Iterable[Event], stances: Stances
) -> tuple[list[Pair], PairedRatio | None]:
    """The pairs that count, of the callable whose blocks took longest, and what they say."""
    head = {"pass": "trials", "rank": process.rank, "pid": process.pid}
    rows = table_of("blocks", ({**block, **head} for block in blocks)).iter_rows(named=True)
    kinds = paired(rows, stances).values()
    used = [[pair for pair in pairs if pair.left_out is None] for pairs in kinds]
    pairs = max(
        used,
        key=lambda pairs: sum(p.base["duration_ms"] + p.other["duration_ms"] for p in pairs),
        default=[],
    )
    figures = [(pair.base_ms, pair.other_ms, pair.weight) for pair in pairs]
    known = [(b, o, w) for b, o, w in figures if b is not None and o is not None and w is not None]
    if not known:
        return pairs, None
    base, other, weights = zip(*known, strict=True)
    return pairs, ratio_of_pairs(base, other, weights)


def _outputs(checks: Iterable[Event], compared: Iterable[Event]) -> Outputs:
    rows: dict[tuple[Any, Any], dict[Any, Event]] = {}
    for row in checks:
        rows.setdefault((row.get("region_id"), row.get("output")), {})[row.get("run")] = row
    changed = [
        (str(output or "the call"), runs[TRIAL])
        for (_, output), runs in rows.items()
        if runs.get(TRIAL, {}).get("same") is False
        and runs.get("compiled", {}).get("same") is not False
    ]
    if changed:
        output, row = max(changed, key=lambda pair: _number(pair[1], "rmse"))
        said = row.get("why")
        if not isinstance(said, str) or not said:
            said = f"by up to {_number(row, 'max_abs_diff'):.2g}"
            if rmse := _number(row, "rmse"):
                eager = _number(row, "eager_rmse")
                said += f", error against float64 {rmse:.2g}, eager's {eager:.2g}"
        return Outputs(False, f"{output} differs from eager: {said}")
    same = [runs for runs in rows.values() if runs.get(TRIAL, {}).get("same") is True]
    if same:
        return Outputs(True)
    reasons = (row.get("why") for row in compared if row.get("compared") is False)
    why = next((reason for reason in reasons if isinstance(reason, str)), None)
    return Outputs(None, f"outputs were not compared{f': {why}' if why else ''}")


def _number(row: Event, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
