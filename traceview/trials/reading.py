"""The events of a trials process (docs/run-folder.md), read into what each trial measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from statistics import median
from typing import Any, Literal

import msgspec
import polars as pl
from msgspec.structs import replace

from traceview.derive import derive
from traceview.derive.compiler.first_calls import outermost_autotuning
from traceview.derive.figures import PairedRatio, ratio_of_pairs
from traceview.derive.pairs import Pair, Stances, paired
from traceview.diagnosis.excerpts import source_reader
from traceview.json_errors import NOT_JSON
from traceview.parse import parse_run, structured, textlogs
from traceview.parse.collected import table_of
from traceview.parse.collected.events import Event, Process, read_processes
from traceview.parse.collected.replays import per_step_ms
from traceview.parse.damage import Damage
from traceview.parse.keys import CompileKeys
from traceview.reading import of_chosen
from traceview.rules import run_rules
from traceview.rules.choice import choose
from traceview.run import TICKS, Manifest, PassRecord, Run
from traceview.torchtext.cudagraphs import partition_reason, run_id
from traceview.trials.model import Baseline, Cudagraphs
from traceview.words.names import at_line

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
    warm_compile_s: float | None = None
    warm_compiles: int | None = None
    began_us: float | None = None
    timed_us: float | None = None
    debug: str | None = None


class Outputs(msgspec.Struct, frozen=True):
    """Whether a trial's outputs and gradients agree with eager's, and what to say of it.

    ``agree`` is None where none could be compared. Where what runs without the trial differs from
    eager just as well, the trial has changed nothing; where it differs and the trial's agree, all
    of them, they are ``corrected``.
    """

    agree: bool | None = None
    why: str | None = None
    max_abs_diff: float | None = None
    rmse: float | None = None
    eager_rmse: float | None = None
    corrected: bool = False


class Logged(msgspec.Struct, frozen=True):
    """What torch's logs say of one trial; nothing of it is known where there are none.

    ``cudagraphs``: yes or skipped, None where the log mentions none. ``place``: where compiling
    failed, or the first graph break.
    """

    recompiles: int | None = None
    autotune_s: float | None = None
    cudagraphs: Cudagraphs | None = None
    cudagraphs_why: str | None = None
    place: str | None = None


class Measured(msgspec.Struct, frozen=True):
    """What one process says of one trial, or several where the script ends too early for one.

    ``figures``: of each pair that counts, ms of both sides and its weight.
    """

    ended: Ended
    ratio: PairedRatio | None
    pairs: int
    clock: str | None
    outputs: Outputs
    logged: Logged = Logged()
    sizes: int | None = None
    figures: tuple[tuple[float, float, float], ...] = ()
    processes: int = 1


class Died(msgspec.Struct, frozen=True):
    """Of a process that ended before its trials had: the one under way, and the script's error."""

    during: str | None = None
    error: str | None = None


class Apart(msgspec.Struct, frozen=True):
    """What a process measured that ran one way all the time.

    ``step_ms``: the median of its blocks, which are calls of ``anchor``; None: it ended before,
    ``error`` if by an exception. ``loops``: (milliseconds of an iteration, how many) by loop of the
    script. ``refused``: why its settings could not be in force. Where results were checked,
    ``wrong`` are the rules that say that they are, and ``results`` is how many were compared.
    """

    step_ms: float | None = None
    anchor: str | None = None
    loops: dict[str, tuple[float, int]] = {}
    clock: str | None = None
    compile_s: float | None = None
    error: str | None = None
    refused: str | None = None
    wrong: frozenset[str] = frozenset()
    results: int = 0

    @property
    def timed(self) -> bool:
        """Whether anything of it was."""
        return self.step_ms is not None or bool(self.loops)


def checked(raw: Path) -> tuple[frozenset[str], int]:
    """Rules that say of the process with the raw folder ``raw`` that compiled results are wrong.

    And how many results of its compiled code were compared with eager's at its end.
    """
    record = PassRecord("cold", raw.relative_to(raw.parent.parent).as_posix())
    run = Run(raw.parent.parent, Manifest(passes=[record]))
    parsed = parse_run(run)
    rules = [rule for rule in choose().rules if rule.name.startswith("acc-")]
    findings, _ = run_rules(of_chosen(derive(parsed, {}, source_reader(run, parsed))), rules)
    ends = parsed["end_checks"].to_dicts() if parsed.has("end_checks") else []
    wrong = frozenset(finding.rule for finding in findings if finding.is_wrong)
    return wrong, sum(row["results"] or 0 for row in ends)


def read_apart(raw: Path, *, with_results: bool = False) -> Apart:
    """The process with the raw folder ``raw``; of several ranks the first one."""
    loops: dict[str, tuple[float, int]] = {}
    with suppress(OSError, *NOT_JSON, msgspec.ValidationError, AttributeError, KeyError, TypeError):
        counted = json.loads((raw / TICKS).read_bytes()).items()
        timed = {name: (row["ms"], row["count"]) for name, row in counted}
        loops = msgspec.convert(timed, dict[str, tuple[float, int]])
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
    tried = next(iter(main.of("trial")), None)
    wrong, results = checked(raw) if with_results and not error else (frozenset[str](), 0)
    return Apart(
        step_ms=median(ms for row in longest if (ms := per_step_ms(row))) if longest else None,
        anchor=names.get(longest[0]["anchor_region_id"]) if longest else None,
        loops=loops,
        clock=longest[0]["clock"] if longest else None,
        compile_s=sum(compiles) / 1e3 if compiles else None,
        error=f"{error.get('type')}: {error.get('message')}" if error else None,
        refused=tried.get("why") if tried else None,
        wrong=wrong,
        results=results,
    )


def read_trials(raw: Path, baseline: Baseline) -> dict[str, Measured]:
    """Name → what the process with the raw folder ``raw`` measured of each trial that it ended.

    Of several ranks the first one counts.
    """
    processes = read_processes(raw, raw.name, Damage())
    reporting = [each for each in processes if each.of("trial") or each.of("trial_begin")]
    main = min(reporting, key=lambda process: process.rank or 0, default=None)
    if main is None:
        return {}
    blocks = _by_trial(main.of("block"))
    checks, compared = _by_trial(main.of("output_check")), main.of("output_trial")
    # Where the script's own compiled code differs from eager, a remedy is not to blame for it; a
    # rung of the ladder is.
    usual = [row for row in main.of("output_check") if row.get("run") == "compiled"]
    usual = usual if baseline == "compiled" else []
    ends = []
    for event in main.of("trial"):
        with suppress(msgspec.ValidationError):  # as if it had not come: the trial is tried again
            ends.append(msgspec.convert(event, Ended))
    # The process ended while they were under way.
    seen = {ended.name for ended in ends}
    ends += [Ended(name, "unfinished") for name in blocks if name not in seen]
    logged = _logged(raw, main.pid, ends)
    sizes = max((len(e.get("input_sizes") or ()) for e in main.of("region_end")), default=0)
    found = {}
    for ended in ends:
        name, debug = ended.name, ended.debug and Path(ended.debug)
        if debug:
            root = raw.parent.parent
            inside = debug.relative_to(root) if debug.is_relative_to(root) else debug
            ended = replace(ended, debug=inside.as_posix())
        pairs, figures = _timed(main, blocks.get(name, ()), (baseline, TRIAL))
        found[name] = Measured(
            ended,
            _ratio(figures),
            len(pairs),
            pairs[0].clock if pairs else None,
            _outputs((*usual, *checks.get(name, ())), compared),
            logged.get(name, Logged()),
            sizes or None,
            figures,
        )
    return found


def together(parts: Sequence[Measured]) -> Measured:
    """What processes that each ended before a trial had enough pairs say of it."""
    figures = tuple(figure for part in parts for figure in part.figures)
    last, outputs = parts[-1], [part.outputs for part in parts]
    known = [each for each in outputs if each.agree is not None]
    return replace(
        last,
        ended=replace(last.ended, state="measured", why=None),
        ratio=_ratio(figures),
        pairs=len(figures),
        outputs=min(known or outputs, key=lambda each: bool(each.agree)),
        figures=figures,
        processes=len(parts),
    )


def read_died(raw: Path) -> Died:
    """How far the process with the raw folder ``raw`` came, of several ranks the first one."""
    processes = read_processes(raw, raw.name, Damage())
    main = min(processes, key=lambda process: process.rank or 0, default=None)
    if main is None:
        return Died()
    begun = [event.get("name") for event in main.of("trial_begin")]
    ended = {event.get("name") for event in main.of("trial")}
    during = begun[-1] if begun and begun[-1] not in ended else None
    error = next(iter(main.of("error")), None)
    said = error and f"{error.get('type')}: {error.get('message')}".partition("\n")[0]
    return Died(during if isinstance(during, str) else None, said or None)


def _by_trial(events: Iterable[Event]) -> Mapping[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(name := event.get(TRIAL), str):
            found.setdefault(name, []).append(event)
    return found


def _timed(
    process: Process, blocks: Iterable[Event], stances: Stances
) -> tuple[list[Pair], tuple[tuple[float, float, float], ...]]:
    """The pairs that count, of the callable whose blocks took longest, and their figures."""
    head = {"pass": "trials", "rank": process.rank, "pid": process.pid}
    rows = table_of("blocks", ({**block, **head} for block in blocks)).iter_rows(named=True)
    kinds = paired(rows, stances).values()
    used = [[pair for pair in pairs if pair.left_out is None] for pairs in kinds]
    pairs = max(
        used,
        key=lambda pairs: sum(p.base["duration_ms"] + p.other["duration_ms"] for p in pairs),
        default=[],
    )
    figures = ((pair.base_ms, pair.other_ms, pair.weight) for pair in pairs)
    return pairs, tuple(
        (b, o, w) for b, o, w in figures if b is not None and o is not None and w is not None
    )


def _ratio(figures: Sequence[tuple[float, float, float]]) -> PairedRatio | None:
    return ratio_of_pairs(*zip(*figures, strict=True)) if figures else None


def _outputs(checks: Iterable[Event], compared: Iterable[Event]) -> Outputs:
    rows: dict[tuple[Any, Any], dict[Any, Event]] = {}
    for row in checks:
        rows.setdefault((row.get("region_id"), row.get("output")), {})[row.get("run")] = row
    errors = _errors(runs[TRIAL] for runs in rows.values() if TRIAL in runs)
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
        return Outputs(False, f"{output} differs from eager: {said}", **errors)
    known = {
        run: [r[run]["same"] for r in rows.values() if run in r] for run in (TRIAL, "compiled")
    }
    alone = [runs[TRIAL] for runs in rows.values() if runs.get(TRIAL, {}).get("function")]
    if unknown := [row for row in alone if row.get("same") is None]:
        what, why = unknown[0].get("function"), unknown[0].get("why")
        return Outputs(None, f"what {what}() gives was not compared: {why}", **errors)
    if True in known[TRIAL]:
        corrected = all(known[TRIAL]) and False in known["compiled"]
        return Outputs(True, corrected=corrected, **errors)
    reasons = (row.get("why") for row in compared if row.get("compared") is False)
    why = next((reason for reason in reasons if isinstance(reason, str)), None)
    return Outputs(None, f"outputs were not compared{f': {why}' if why else ''}")


def _errors(checks: Iterable[Event]) -> dict[str, Any]:
    """Figures of the output whose error is largest, as part of its values' own size."""
    kept = ("max_abs_diff", "rmse", "eager_rmse")
    rows = [row for row in checks if isinstance(row.get("max_abs_diff"), int | float)]

    def relative(row: Event) -> float:
        return (_number(row, "rmse") or _number(row, "rms_diff")) / (_number(row, "scale") or 1.0)

    worst = max(rows, key=relative, default={})
    return {name: float(v) for name in kept if isinstance(v := worst.get(name), int | float)}


def _logged(raw: Path, pid: int, ends: Iterable[Ended]) -> dict[str, Logged]:
    """What was logged between the begin of each trial and the end of its blocks."""
    run = Run(raw.parent.parent, Manifest())
    record = PassRecord("trials", raw.relative_to(run.folder).as_posix())
    trace = structured.read_pass(run, record, Damage())
    compiles = trace.get("compiles")
    if compiles is None:
        return {}
    keys = CompileKeys(record.name, compiles)
    text = textlogs.read_pass(run, record, Damage(), keys)

    def rows(name: str, *frames: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
        found = [frame[name].to_dicts() for frame in frames if name in frame]
        return [row for each in found for row in each]

    phases = [row for row in rows("compile_phases", trace) if row["pid"] == pid]
    autotuning = outermost_autotuning(phases)
    breaks = rows("graph_breaks", trace, text)
    events: list[tuple[str | None, dict[str, Any]]] = []
    for event in rows("cudagraph_events", text):
        # What is logged in a run rather than in a compile names it in its text, or not at all.
        before = events[-1][0] if events else None
        events.append((run_id(event["reason"] or "") or event["compile_id"] or before, event))
    found = {}
    for ended in ends:
        began, timed = ended.began_us, ended.timed_us
        if began is None or timed is None:
            continue
        mine = [
            row
            for row in rows("compiles", trace)
            if row["pid"] == pid and began <= (row["started_us"] or 0.0) <= timed
        ]
        known = {row["compile_key"] for row in mine}
        frames = {(row["epoch"], row["frame_id"]) for row in mine}
        autotuned = (
            row["duration_us"] or 0.0
            for row in autotuning
            if began <= (row["started_us"] or 0.0) <= timed
        )
        ids = {row["compile_id"] for row in mine}
        places = [(row["fail_user_file"], row["fail_user_line"]) for row in mine]
        own_breaks = (row for row in breaks if row["compile_key"] in known)
        places += [(row["user_file"], row["user_line"]) for row in own_breaks]
        cudagraphs, why = _cudagraphs(mine, [event for own, event in events if own in ids])
        found[ended.name] = Logged(
            recompiles=len(known) - len(frames),
            autotune_s=sum(autotuned) / 1e6,
            cudagraphs=cudagraphs,
            cudagraphs_why=why,
            place=next((at_line(PurePath(f).name, line) for f, line in places if f and line), None),
        )
    return found


def _cudagraphs(
    compiles: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]
) -> tuple[Cudagraphs | None, str | None]:
    by_kind: dict[str, list[str]] = {}
    for event in events:
        by_kind.setdefault(event["event"], []).append(event["reason"] or "")
    reasons = by_kind.get("skip", []) + by_kind.get("rerecord_limit", [])
    reasons += [row["cudagraph_skip_reason"] for row in compiles if row["cudagraph_skip_reason"]]
    parts = [text for text in by_kind.get("partition", ()) if partition_reason(text)]
    why = next((partition_reason(text) or text for text in (*reasons, *parts)), None)
    if by_kind.get("record") or by_kind.get("rerecord"):
        return "yes", f"not all of it: {why}" if why else None
    return ("skipped", why) if reasons else (None, None)


def _number(row: Event, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
