"""
## What it finds
A compiled step that spends its time outside of the model: loading data, in Python of the script's
own, in copies between pageable memory and the device; or, where those are small, in operators in
eager, such as an optimizer's or those of a loop over all parameters.

## Why it costs
Compiling shortens what is compiled and nothing else. If half of a step is something else, the step
can become twice as fast at most.

## Evidence
Of the compiled step as timed, the part that the profiler window shows in `DataLoader`'s own mark,
in stretches of Python between operators, and in copies from pageable memory or into it; on a GPU
only what the device waits for, and the copies. It is at least 30 % of the step, and calls of
compiled code with their backward leave as much of it; or copies alone are as much, wherever they
are, as compiled code copies no faster. Operators in eager count where these calls are less than
half of the step, on a GPU with what it waits for their launches. Python at the line that calls
compiled code counts as no more than what the timed step leaves after all other work: a thread that
waits for its next call looks the same. Where a DataLoader's iterator is made again every few steps,
the collector records how long its workers take to start, and the wait for the first batch.

A warning where it is more than half of the step and the host is busy. Otherwise information:
waiting may be what the script is for. Operators in no compiled graph are information, unless a GPU
waits for their launches for more than half of the step, or a sparse tensor is coalesced again.
Unless it is waiting, the finding is ranked among the causes by its cost.

## What to do
Data: `DataLoader(num_workers=…)`, so that batches are made while the step runs; with
`persistent_workers=True` where epochs are short. Python: do it ahead, in the loader's workers or a
thread, or on whole tensors. Copies: `pin_memory=True` and `.to(device, non_blocking=True)`. A
tensor that compiled code copies to the GPU in every call: keep it there (`register_buffer`). An
optimizer: `fused=True`, or `torch.compile(optimizer.step)`; where its operators run on lists of one
tensor each, parameters with the same options belong in one param group. A loop over parameters: one
`torch._foreach_…` call for all of them, or a function of its own with `@torch.compile`. A mask of
flex_attention: make it once, or by `torch.compile(create_block_mask)`. `traceview try` compiles
such functions. A sparse COO tensor whose indices are sorted in every step: `.coalesce()`, once.

## Settings
- `least_share`: part of a compiled step outside of the model, 0 to 1, from which it is reported.
- `warn_share`: the same, above which it is a warning.

## References
- https://docs.pytorch.org/docs/stable/data.html
- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- torch/utils/data/dataloader.py
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from traceview.derive.facts import eager_code
from traceview.derive.outcome import calls_copies
from traceview.rules import _recompiles
from traceview.rules._gain import input_behind, inputs_named, location
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Tables,
    first,
    first_rank,
    is_timed,
    line_of,
    milliseconds,
    percent,
    plural,
    ratio,
    rows,
    short,
    step_ms,
    times,
)
from traceview.torchtext.fx import read_graph

CODE = "TV411"
NEEDS = frozenset({"outside_work", "step_shares", "step_counts"})
SEVERITIES = ("warning", "info")
#: Calling torch.compile, or resetting it, at every step is Python of the script's own.
FOLLOWS = frozenset({"rc-backend-mismatch", "ct-compile-in-step", "ct-repeated-same-compile"})

LEAST_SHARE = 0.30
WARN_SHARE = 0.50
#: A loop around a call of some microseconds is no work of the script's.
LEAST_MS = 0.1
#: Where compiled code is the larger part, operators in eager are not what the step is about.
MOST_COMPILED_SHARE = 0.50
#: Where the thread waits for a CPU longer than this, a profile of a few steps shows the time of
#: Python partly by chance …
MOST_QUEUED_SHARE = 0.30
#: … unless it is this much of the step.
SURE_SHARE = 0.80
NO_GAIN = 1.1  # a gain below it is not worth a finding
#: One part that is this much of the whole names it in the title.
MOST_OF_OUTSIDE = 0.80
#: Smaller parts are not named.
LEAST_OF_OUTSIDE = 0.20
#: An optimizer class that steps this often in one step has an instance per parameter, or per layer;
#: one with as many lists of one tensor has a param group per parameter.
MANY_STEPS = 8
#: Fewer starts of a loader's workers may be those of a script's phases.
FEWEST_STARTS = 3
#: The most workers to recommend.
MOST_WORKERS = 8
_OPERATORS = "operators"
#: What starts worker processes again: iterators over one loader, or each time another loader.
_WORKERS, _LOADERS = "workers", "loaders"
_EAGER = "operators outside of compiled code"
_MOVE = "Move these operators into a function that is compiled."
_COALESCE = "Call .coalesce() once, where the sparse tensor is made, and keep the result."
_SAME = "Do it ahead of the step, or less of it: compiled code would call the same operators."
_NAMES = {
    _OPERATORS: "operators in eager",
    "loading": "loading data",
    "python": "Python of the script's own",
    "copies": "copies from pageable memory",
}


class Part(msgspec.Struct, frozen=True):
    """One kind of work outside, ms of a step; ``places``: its lines, most expensive first.

    Where no line has half of it, but one that calls them has, that comes before them. ``waits_ms``:
    of it, a device waits for launches. ``calls``: steps of an optimizer; ``lists``: of its lists of
    tensors, how many have a single one. ``advice``: what to do with operators.
    """

    kind: str
    ms: float
    places: tuple[Location, ...]
    what: str | None
    waits_ms: float = 0.0
    calls: float = 0.0
    lists: float = 0.0
    advice: str = _MOVE


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, warn_share: float = WARN_SHARE
) -> Iterator[Finding]:
    """At most one finding: the step as a whole, at the most expensive line outside."""
    step, shares = step_ms(tables, "compiled"), first(tables, "step_shares")
    if not step:
        return
    inside = shares["compiled"] if shares else None
    restarts = first_rank(rows(tables, "loader_restarts"))
    restarts = [row for row in restarts if row["starts"] >= FEWEST_STARTS]
    starting = set(map(line_of, restarts)) - {None}
    parts: dict[tuple[str, str | None], list[Row]] = {}
    for row in first_rank(rows(tables, "outside_work")):
        key = row["kind"], None if row["kind"] == "loading" else row["what"]
        if row["kind"] == "python" and line_of(row) in starting:
            key = _WORKERS, None
        parts.setdefault(key, []).append(row)
    found = []
    # Copies of operands that compiled code gets on the CPU have a rule of their own.
    operands = first_rank(rows(tables, "host_operands"))
    own = sum(row["copy_ms"] + row["wait_ms"] for row in operands)
    for (kind, _), mine in parts.items():
        what = mine[0]["what"]
        lines = dict.fromkeys([*_calling(mine), *map(line_of, mine)])
        of_ms = sum(row["ms"] or 0.0 for row in mine)
        ms = step * sum(row["share"] or 0.0 for row in mine)
        if kind == "copies" and not what:
            ms = max(0.0, ms - own)
        places = tuple(filter(None, lines))
        waits = ms * sum(row["waits_ms"] or 0.0 for row in mine) / of_ms if of_ms else 0.0
        calls = max(row["calls"] or 0.0 for row in mine)
        same = sum(row["same_ms"] or 0.0 for row in mine) > of_ms / 2
        found.append(Part(kind, ms, places, what, waits, calls, advice=_SAME if same else _MOVE))
        lists, tensors = mine[0]["lists"] or 0.0, mine[0]["list_tensors"] or MANY_STEPS
        if lists >= MANY_STEPS and tensors < 2:  # a list is there for more than one
            found[-1] = replace(found[-1], lists=lists)
    found = sorted(_with_starts(found, restarts), key=lambda part: -part.ms)
    eager = [part for part in found if part.kind == _OPERATORS]
    found = [part for part in found if part.kind != _OPERATORS]

    outside = sum(part.ms for part in found)
    copied = sum(part.ms for part in found if part.kind == "copies")
    least = max(LEAST_MS, least_share * step)
    if outside >= least and max(copied, step * (1 - (inside or 0.0))) >= least:
        yield _outside(tables, found, outside, step, shares, warn_share)
    # Where no code is compiled, all operators are outside of it.
    elif eager and is_timed(tables) and inside is not None and inside < MOST_COMPILED_SHARE:
        left = step * (1 - (inside or 1.0)) - outside
        if min(sum(part.ms for part in eager), left) >= least:
            yield from _eager(tables, eager, step, inside, warn_share)


def _with_starts(found: list[Part], restarts: list[Row]) -> Iterator[Part]:
    """``found``, with what it takes to start workers again apart from loading.

    Starting them is Python at the iterator's line; waiting for the first batch, and for the workers
    before to end, is in the loader's mark.
    """
    begun = sum(part.ms for part in found if part.kind == _WORKERS)
    left = max(0.0, sum(row["ms"] for row in restarts) - begun)
    for part in found:
        taken = min(left, part.ms) if part.kind == "loading" else 0.0
        begun, left = begun + taken, left - taken
        if part.kind != _WORKERS:
            yield replace(part, ms=part.ms - taken)
    if restarts and begun:
        row = restarts[0]
        each_new = row["loaders"] > row["starts"]
        places = [line_of(row)]
        if row["made_file"] and not each_new:
            places.append(Location(row["made_file"], row["made_line"]))
        every = f"every {row['every']:.0f} steps" if row["every"] > 1 else "in every step"
        what = f"starting {plural(row['workers'] or 0, 'worker')} of a DataLoader again {every}"
        yield Part(_LOADERS if each_new else _WORKERS, begun, tuple(filter(None, places)), what)


def _lines(row: Row) -> list[str]:
    """The line of a row of ``outside_work``, and those that call it."""
    return [f"{row['file']}:{row['line']}", *(row["callers"] or ())]


def _calling(found: list[Row]) -> Iterator[Location | None]:
    """The narrowest line with half of these, if it is one that calls others of them.

    What is called by a line that takes long itself, as ``create_block_mask`` does, is that line's.
    """
    ms, depth = defaultdict[str, float](float), dict[str, int]()
    whole = sum(row["ms"] or 0.0 for row in found)
    own = {_lines(r)[0] for r in found if (r["ms"] or 0.0) >= LEAST_OF_OUTSIDE * whole}
    for row in found:
        lines = _lines(row)
        for above, place in enumerate(lines):
            ms[place] += row["ms"] or 0.0
            if own.isdisjoint(lines[above + 1 :]):
                depth[place] = max(depth.get(place, 0), len(lines) - above)
    half = [place for place in depth if 2 * ms[place] >= whole]
    narrowest = min(half, key=lambda place: (ms[place], -depth[place]), default=None)
    if narrowest is not None and any(narrowest in (row["callers"] or []) for row in found):
        yield location(narrowest)


def _eager(
    tables: Tables, parts: list[Part], step: float, inside: float, warn_share: float
) -> Iterator[Finding]:
    """Operators in eager, ``parts`` by optimizer, most expensive first."""
    ms, most = sum(part.ms for part in parts), parts[0]
    if not most.what and _went_wrong(tables, most, ms):  # an optimizer's step has no such cause
        return
    named = [part for part in parts if part.ms >= LEAST_OF_OUTSIDE * ms]
    where = [place for part in named for place in part.places]
    at = f" ({short(where[0])})" if where else ""
    coalesces = first_rank(rows(tables, "sparse_coalesces"))
    again = coalesces[0] if coalesces and coalesces[0]["ms"] >= ms / 2 else None
    whose = f"{most.what}.step()" if most.what else _EAGER
    if again:
        whose = f"{_EAGER}, most of it sorting a sparse tensor's indices again"
    elif most.what and most.ms < MOST_OF_OUTSIDE * ms:
        whose = f"{_EAGER}, most of it {whose}"
    cut = f", on {most.lists:.0f} lists of one tensor" if most.lists and not again else ""
    waits = sum(part.waits_ms for part in parts)
    explanation = f"{milliseconds(ms)} of {milliseconds(step)} run the same without torch.compile."
    if waits >= ms / 2:
        explanation += f" The GPU waits for their launches for {milliseconds(waits)} of that."
    if again:
        explanation += (
            " A sparse COO tensor that is not coalesced is coalesced in every call that needs its "
            "indices sorted. No operator keeps what comes out."
        )
    evidence = [*_proof(named, inside, waits=False)]
    if again:
        often = f"aten::_coalesce runs {times(again['per_step'])} per step"
        evidence.insert(0, Evidence(f"{often}, {milliseconds(again['ms'])}", "sparse_coalesces"))
    yield Finding(
        code=CODE,
        rule="ap-not-in-model",
        severity="warning" if again or waits > warn_share * step else "info",
        title=f"{percent(min(1.0, ms / step))} of a compiled step is {whose}, in eager{cut}{at}",
        explanation=explanation,
        cost=Cost(ms, None, "current time of operators in no compiled graph"),
        confidence="derived",
        location=where[0] if where else None,
        evidence=tuple(evidence),
        what_to_do=" ".join(
            _of_optimizer(part) if part.what else _COALESCE if again else part.advice
            for part in named
        ),
        also_at=tuple(dict.fromkeys(where[1:4])),
        weighs=True,
    )


def _went_wrong(tables: Tables, part: Part, ms: float) -> bool:
    """Whether they are in eager because something went wrong, which other rules report.

    The compiled callable is never called, a function hit the recompile limit, a frame was skipped,
    nothing runs compiled after a graph break, they add gradients of slices, calls fit no compiled
    version and none may be added, or they are those of an uncompiled copy of a module.
    """
    files = {place.file for place in part.places}
    skipped = {row["co_filename"] for row in rows(tables, "compiles", outcome="skipped")}
    left = [row["eager_ms"] or 0.0 for row in rows(tables, "break_costs")]
    left += [row["ms"] or 0.0 for row in rows(tables, "slice_gradients") if row["host_ms"]]
    if tables.once(eager_code.uncalled_ms) or files & skipped or max(left, default=0) >= ms / 2:
        return True
    served = rows(tables, "served_calls", user_stance="eager_on_recompile", after_modes=False)
    fitting = sum(row["calls"] - 2 * (row["eager_calls"] or 0) for row in first_rank(served))
    if _share_of_copies(tables) >= 1 / 2 or fitting < 0:
        return True
    regions = first_rank(rows(tables, "regions"))
    for limited in _recompiles.limited_frames(tables):
        mine = (row for row in regions if (row["target_file"], row["target_line"]) == limited)
        known = [own for row in mine if (own := eager_code.ms_of(tables, row)) is not None]
        if not known or max(known) >= LEAST_OF_OUTSIDE * ms:
            return True
    return False


def _of_optimizer(part: Part) -> str:
    if part.calls >= MANY_STEPS:
        return (
            f"{part.what}.step() runs {part.calls:.0f} times per step: give one optimizer all "
            "parameters and call its step() once, after the backward. It then updates them with "
            "few launches, but all gradients are kept until then."
        )
    if part.lists:
        return (
            f"{part.what}.step() runs each operator {part.lists:.0f} times, on one tensor: so it "
            "does with a param group per parameter. Put parameters with the same options in one "
            "group, so that few launches update all of them. fused=True runs once per group as "
            "well."
        )
    return (
        "Give the optimizer fused=True, where it has that, or compile its step: step = "
        "torch.compile(optimizer.step). For large embeddings of which a step reads few "
        "rows: sparse=True, with SparseAdam or SGD."
    )


def _share_of_copies(tables: Tables) -> float:
    """Of the operators in eager, the part in a module's code of which copies are called."""
    copied = {row["region_id"] for row in rows(tables, "module_copies") if calls_copies(row)}
    regions = first_rank(rows(tables, "regions"))
    code = [row for row in regions if row["region_id"] in copied and row["target_last_line"]]
    operators = first_rank(rows(tables, "outside_work", kind=_OPERATORS))

    def within(line: str) -> bool:
        return (place := location(line)) is not None and any(
            place.file == row["target_file"]
            and row["target_line"] <= (place.line or 0) <= row["target_last_line"]
            for row in code
        )

    whole = sum(row["share"] or 0.0 for row in operators)
    mine = sum(row["share"] or 0.0 for row in operators if any(map(within, _lines(row))))
    return mine / whole if whole else 0.0


def _outside(
    tables: Tables,
    found: list[Part],
    outside: float,
    step: float,
    shares: Row | None,
    warn_share: float,
) -> Finding:
    named = [part for part in found if part.ms >= LEAST_OF_OUTSIDE * outside]
    most, share = named[0], min(1.0, outside / step)
    # Whether the largest part is mostly waiting; None: not known. A loader that makes the step
    # wait is worth fixing whatever it waits for itself.
    waits = None if most.kind == "python" else False
    if most.kind == "python" and shares is not None and shares["waiting"] is not None:
        # A thread that loses its CPU all the time stands still anywhere.
        sure = shares["queued"] <= MOST_QUEUED_SHARE or share >= SURE_SHARE
        waits = shares["waiting"] * step >= most.ms / 2 or (False if sure else None)
    where = [place for part in named for place in part.places]
    if waits:
        what = "waiting outside of the model"
    elif most.ms >= MOST_OF_OUTSIDE * outside:
        what = _name(most)
    else:
        what = f"not in the model, most of it {_name(most)}"
    at = f" ({short(where[0])})" if where else ""
    ceiling = f"{milliseconds(outside)} of {milliseconds(step)} are not in the model."
    if eager := step_ms(tables, "eager"):
        ceiling += f" A step takes {milliseconds(eager)} in eager"
        if eager / outside <= NO_GAIN:
            ceiling += ": compiling can gain next to nothing."
        else:
            ceiling += (
                f" and is {ratio(eager / step)} as fast compiled. If all the rest took no time, it "
                f"would be {ratio(eager / outside)} as fast."
            )
    inside = shares["compiled"] if shares else None
    return Finding(
        code=CODE,
        rule="ap-not-in-model",
        severity="warning" if share > warn_share and waits is False else "info",
        title=f"{percent(share)} of a compiled step is {what}{at}: compiling cannot shorten that",
        explanation=ceiling,
        cost=Cost(outside, None, "current time of a compiled step outside of the model"),
        confidence="measured",
        location=where[0] if where else None,
        evidence=tuple(_proof(named, inside, waits=waits is True)),
        what_to_do=" ".join(_remedy(tables, part, step, waits=waits is True) for part in named),
        also_at=tuple(dict.fromkeys(where[1:4])),
        weighs=not waits,
    )


def _proof(named: list[Part], inside: float | None, *, waits: bool) -> Iterator[Evidence]:
    for part in named:
        lines = ", ".join(short(place) for place in part.places[:3])
        what = "waiting, in Python" if waits and part.kind == "python" else _name(part)
        text = f"{what}: {milliseconds(part.ms)} of a step"
        yield Evidence(f"{text}, at {lines}" if lines else text, "outside_work")
    if inside is not None:
        text = f"calls of compiled code and their backward: {percent(min(1.0, inside))} of the step"
        yield Evidence(f"{text}, as profiled", "step_shares")


def _name(part: Part) -> str:
    if part.kind == _OPERATORS and part.what:
        return f"{part.what}.step()"
    if part.kind == "copies" and part.what:
        return "copies to the host, into pageable memory"
    return _NAMES.get(part.kind, part.what or "")


def _remedy(tables: Tables, part: Part, step: float, *, waits: bool) -> str:
    if part.kind == "copies" and part.what:
        return (
            "Reduce the tensor on the GPU and copy the result, or copy seldom. Where all of it is "
            "needed, copy it into pinned memory and use it one step later: "
            "buffer.copy_(x, non_blocking=True)."
        )
    if part.kind == "copies" and (kept := _copied_inputs(tables, part)):
        what, own = " and ".join(kept[:2]), any(name.startswith("self.") for name in kept)
        keep = "register_buffer() in the module, so that .to(device) moves it" if own else "once"
        return (
            f"Compiled code copies {what} to the GPU in every call. Where its values stay the "
            f"same, move it there {'with ' if own else ''}{keep}. Where they change, copy it from "
            "pinned memory before the call: x.pin_memory().to(device, non_blocking=True)."
        )
    if part.kind == "copies":
        return "Give the DataLoader pin_memory=True and copy with .to(device, non_blocking=True)."
    if part.kind == _LOADERS:
        return (
            "The DataLoader is made again each time, and starts its worker processes: make it "
            "once, with persistent_workers=True, before the loop."
        )
    if part.kind == _WORKERS:
        return (
            "Each new iterator over the DataLoader starts its worker processes and waits for their "
            "first batch: keep them with persistent_workers=True, or keep one iterator for longer."
        )
    if part.kind == "loading" and "MultiProcessing" in (part.what or ""):
        return (
            "The DataLoader's workers do not keep up: give it more of them (num_workers), a larger "
            "prefetch_factor, or make its __getitem__ cheaper."
        )
    if part.kind == "loading":
        # As many workers as hide the loading behind the rest of the step.
        run = first(tables, "runs")
        count = run["cpu_count"] if run else None
        most = min(MOST_WORKERS, max(1, count - 1) if count else MOST_WORKERS)
        workers = min(most, math.ceil(part.ms / (step - part.ms))) if step > part.ms else most
        return (
            f"Let worker processes make the batches: DataLoader(..., num_workers={workers}, "
            "persistent_workers=True). Each draws random numbers of its own."
        )
    if waits:
        return (
            "The thread sleeps or waits for a queue, a file or a network: fetch the next piece of "
            "work in a thread while this step runs, unless the waiting is intended."
        )
    return (
        "Move this Python out of the step: do it ahead (a DataLoader's workers, a thread), once, "
        "or on whole tensors."
    )


def _copied_inputs(tables: Tables, part: Part) -> list[str]:
    """What compiled code gets on the host and copies to a device at the lines of ``part``."""
    places = {f"{place.file}:{place.line}" for place in part.places}
    found: dict[str, None] = {}
    for row in first_rank(rows(tables, "graphs", kind="dynamo_output")):
        graph = read_graph(row["text"] or "")
        called = inputs_named(tables, row, graph)
        for node in graph.operations:
            if node.user_line not in places or node.meta.endswith("cpu"):
                continue
            for name in node.inputs:
                name = input_behind(graph, called, name)
                if graph.nodes[name].meta.endswith("cpu"):
                    found[called.get(name, name)] = None
    return list(found)
