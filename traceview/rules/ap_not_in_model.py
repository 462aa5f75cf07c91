"""
## What it finds
A compiled step that spends its time outside of the model: on loading data, on Python of the
script's own, on copies to the device that hold the host; or, where those are few, on operators in
eager, such as an optimizer's.

## Why it costs
Compiling shortens what is compiled and nothing else. If half of a step is something else, the step
can become twice as fast at most, however good the compiled code is.

## Evidence
Of the compiled step as timed, the part that the profiler window shows in `DataLoader`'s own mark,
in stretches of Python between operators, and in copies from pageable memory; on a GPU only what the
device waits for. It is at least 30 % of the step, and calls of compiled code with their backward
are less than half of it. Python at the line that calls compiled code counts as no more than what
the timed step leaves beside all other work: a thread that waits for its next call looks alike.

A warning where it is more than half of the step and the host works meanwhile; else information:
waiting (for a queue, a file, a network, a sleep) may be what the script is for. Operators that no
compiled graph holds are information always. Among the causes it stands by its cost all the same,
unless it is waiting.

## What to do
Data: `DataLoader(num_workers=…)`, so that batches are made while the step runs. Python: do it
ahead, in the loader's workers or a thread, or on whole tensors. Copies: `pin_memory=True` and
`.to(device, non_blocking=True)`. An optimizer: `fused=True`, or `torch.compile(optimizer.step)`.

## Settings
- `least_share`: part of a compiled step outside of the model, 0 to 1, from which it is said.
- `warn_share`: the same, above which it is a warning.

## References
- https://docs.pytorch.org/docs/stable/data.html
- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- torch/utils/data/dataloader.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec.structs import replace

from traceview.rules import (
    _break_costs,
    _breaks,
    _costs,
    _eager_code,
    _outside,
    _places,
    _recompiles,
)
from traceview.rules._outside import Part
from traceview.rules._rows import first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Severity
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent

CODE = "TV411"
NEEDS = frozenset({"accounting", "account_details", "step_counts"})
#: Calling torch.compile, or starting over, at every step is Python of the script's own.
FOLLOWS = frozenset({"rc-backend-mismatch", "ct-repeated-same-compile"})

LEAST_SHARE = 0.30
WARN_SHARE = 0.50
#: A loop around a call of some microseconds is no work of the script's.
LEAST_MS = 0.1
#: Where compiled code is the larger part, the step is in the model.
MOST_COMPILED_SHARE = 0.50
#: Above it, where a profile of some steps shows the time of Python is partly chance …
MOST_QUEUED_SHARE = 0.30
#: … but not that much of it.
SURE_SHARE = 0.80
#: A gain that nobody would call one.
NO_GAIN = 1.1
#: A part that stands for the whole in the title.
MOST_OF_OUTSIDE = 0.80
#: Parts that are named beside the dearest one.
LEAST_OF_OUTSIDE = 0.20
#: More are asked for by nobody without trying.
MOST_WORKERS = 8
_FUSED = (
    "Give the optimizer fused=True, where it has that, or compile its step: step = "
    "torch.compile(optimizer.step). Large embeddings of which a step reads few rows: sparse=True, "
    "with SparseAdam or SGD."
)
_COMPILED = "Move these operators into a function that is compiled."
_NAMES = {
    "operators": "operators in eager",
    "loading": "loading data",
    "python": "Python of the script's own",
    "copies": "copies from pageable memory",
}


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, warn_share: float = WARN_SHARE
) -> Iterator[Finding]:
    """At most one finding: the step as a whole, at the dearest line outside."""
    step, accounted = _costs.step_ms(tables, "compiled"), _outside.accounted_ms(tables)
    if not step or not accounted:
        return
    found = [_at_most(tables, part, step, accounted) for part in _outside.parts(tables)]
    outside = sum(part.ms for part in found)
    inside = _outside.compiled_share(tables)
    if inside is not None and inside >= MOST_COMPILED_SHARE:
        return
    least = max(LEAST_MS, least_share * step)
    if outside < least:
        if not _costs.is_timed(tables):
            return  # where no code is compiled, all operators are outside of it
        left = step * (1 - (inside or 1.0)) - outside
        eager = _outside.operators(tables).scaled(step / accounted)
        if min(eager.ms, left) >= least and not _has_a_cause(tables, eager):
            yield _eager(tables, eager, min(1.0, eager.ms / step), inside)
        return
    named = [part for part in found if part.ms >= LEAST_OF_OUTSIDE * outside]
    share = min(1.0, outside / step)
    waits = _waits(tables, named[0], share)
    severity: Severity = "warning" if share > warn_share and waits is False else "info"
    yield _finding(tables, named, outside, share, inside, severity, waits=waits is True)


def _has_a_cause(tables: Tables, eager: Part) -> bool:
    """Whether such operators are in eager since something went wrong, which has a rule of its own.

    Nobody calls what was compiled, a function met the recompile limit, a frame was skipped, or
    nothing runs compiled behind a graph break.
    """
    if eager.what:
        return False  # an optimizer's step
    files = {place.file for place in eager.places}
    skipped = {row["co_filename"] for row in rows(tables, "compiles", outcome="skipped")}
    if _eager_code.uncalled_ms(tables) or files & skipped:
        return True
    if any(_is_much(tables, limited, eager) for limited in _recompiles.limited_frames(tables)):
        return True
    left = (_break_costs.left_in_eager(tables, site) for site in _breaks.sites(tables))
    return any((ms or 0.0) >= eager.ms / 2 for ms in left)


def _is_much(tables: Tables, limited: _recompiles.Frame, eager: Part) -> bool:
    """Whether a function that met the recompile limit may be what runs in eager."""
    regions = first_rank(rows(tables, "regions"))
    known = [
        ms
        for row in regions
        if (row["target_file"], row["target_line"]) == limited
        and (ms := _eager_code.ms_of(tables, row)) is not None
    ]
    return not known or max(known) >= LEAST_OF_OUTSIDE * eager.ms


def _eager(tables: Tables, part: Part, share: float, inside: float | None) -> Finding:
    """Operators that were left in eager: information, since many a step has a dear optimizer."""
    at = f" ({_places.short(part.places[0])})" if part.places else ""
    whose = f"{part.what}.step()" if part.what else "operators outside of compiled code"
    return Finding(
        code=CODE,
        rule="ap-not-in-model",
        severity="info",
        title=f"{percent(share)} of a compiled step is {whose}, in eager{at}",
        explanation=(
            f"{milliseconds(part.ms)} of {milliseconds(_costs.step_ms(tables, 'compiled') or 0.0)} "
            "run as they would without torch.compile."
        ),
        cost=Cost(part.ms, None, "time of operators in no compiled graph, as it is now"),
        confidence="derived",
        location=part.places[0] if part.places else None,
        evidence=tuple(_proof([part], inside, waits=False)),
        what_to_do=_FUSED if part.what else _COMPILED,
        also_at=part.places[1:4],
        weighs=True,
    )


def _at_most(tables: Tables, part: Part, step: float, accounted: float) -> Part:
    """``part`` of the step as timed.

    At the line that calls compiled code, a thread that stands still until its next call looks like
    Python, and profiled steps may be apart for longer than timed ones: there it is at most what
    the step leaves beside the rest of the account.
    """
    scaled = part.scaled(step / accounted)
    if part.kind != "python" or not part.places or part.places[0] not in _outside.calling(tables):
        return scaled
    return replace(scaled, ms=max(0.0, min(scaled.ms, step - (accounted - part.ms))))


def _waits(tables: Tables, part: Part, share: float) -> bool | None:
    """Whether the dearest part is mostly waiting; None where nobody knows.

    A loader that makes the step wait is worth curing whatever it waits for itself.
    """
    if part.kind != "python":
        return False
    shares = _outside.thread_shares(tables)
    step = _costs.step_ms(tables, "compiled")
    if shares is None or not step:
        return None
    if shares.waiting * step >= part.ms / 2:
        return True
    # A thread that is thrown off its processor all the time stands still anywhere.
    return False if shares.queued <= MOST_QUEUED_SHARE or share >= SURE_SHARE else None


def _finding(
    tables: Tables, named: list[Part], outside: float, share: float, inside: float | None,
    severity: Severity, *, waits: bool,
) -> Finding:  # fmt: skip
    part = named[0]
    where = [place for each in named for place in each.places]
    what = _what(part, outside, waits=waits)
    at = f" ({_places.short(where[0])})" if where else ""
    return Finding(
        code=CODE,
        rule="ap-not-in-model",
        severity=severity,
        title=f"{percent(share)} of a compiled step is {what}{at}: compiling cannot shorten that",
        explanation=_ceiling(tables, outside),
        cost=Cost(outside, None, "time of a compiled step outside of the model, as it is now"),
        confidence="measured",
        location=where[0] if where else None,
        evidence=tuple(_proof(named, inside, waits=waits)),
        what_to_do=" ".join(_remedy(tables, each, waits=waits) for each in named),
        also_at=tuple(dict.fromkeys(where[1:4])),
        weighs=not waits,
    )


def _what(part: Part, outside: float, *, waits: bool) -> str:
    if waits:
        return "waiting outside of the model"
    most = part.ms >= MOST_OF_OUTSIDE * outside
    return _NAMES[part.kind] if most else f"not in the model, most of it {_NAMES[part.kind]}"


def _ceiling(tables: Tables, outside: float) -> str:
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    text = f"{milliseconds(outside)} of {milliseconds(compiled or 0.0)} are not in the model."
    if not eager or not compiled:
        return text
    text += f" A step takes {milliseconds(eager)} in eager"
    if eager / outside <= NO_GAIN:
        return f"{text}: compiling can gain next to nothing."
    return (
        f"{text}: if all the rest took no time, it would be {eager / outside:.2f}× as fast, and is "
        f"{eager / compiled:.2f}× now."
    )


def _proof(named: list[Part], inside: float | None, *, waits: bool) -> Iterator[Evidence]:
    for part in named:
        lines = ", ".join(_places.short(place) for place in part.places[:3])
        what = "waiting, in Python" if waits and part.kind == "python" else _NAMES[part.kind]
        text = f"{what}: {milliseconds(part.ms)} of a step"
        yield Evidence(f"{text}, at {lines}" if lines else text, "account_details")
    if inside is not None:
        text = f"calls of compiled code and their backward: {percent(min(1.0, inside))} of the step"
        yield Evidence(f"{text}, as profiled", "region_costs")


def _remedy(tables: Tables, part: Part, *, waits: bool) -> str:
    if part.kind == "loading":
        return _loader(tables, part)
    if part.kind == "copies":
        return "Give the DataLoader pin_memory=True and copy with .to(device, non_blocking=True)."
    if waits:
        return (
            "The thread sleeps or waits for a queue, a file or a network: fetch the next piece of "
            "work in a thread while this step runs, unless the waiting is meant."
        )
    return (
        "Move this Python out of the step: do it ahead (a DataLoader's workers, a thread), once, "
        "or on whole tensors."
    )


def _loader(tables: Tables, part: Part) -> str:
    """How many workers would hide the loading behind the rest of the step."""
    if "MultiProcessing" in part.what:
        return (
            "The DataLoader's workers do not keep up: give it more of them (num_workers), a larger "
            "prefetch_factor, or make its __getitem__ cheaper."
        )
    step = _costs.step_ms(tables, "compiled") or 0.0
    rest = step - part.ms
    run = first(tables, "runs")
    count = run["cpu_count"] if run else None
    most = max(1, count - 1) if count else MOST_WORKERS
    workers = min(most, MOST_WORKERS, math.ceil(part.ms / rest) if rest > 0 else MOST_WORKERS)
    return (
        f"Let worker processes make the batches: DataLoader(..., num_workers={workers}, "
        "persistent_workers=True). Each draws random numbers of its own."
    )
