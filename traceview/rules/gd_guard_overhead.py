"""
## What it finds
Guards that take a large part of the compiled step: thousands of them, checked before every call.

## Why it costs
Everything that was read during tracing (attributes, parameters, list items, globals) is checked on
the host before each call, one guard after the other. Thousands of guards take longer than a small
graph.

## Evidence
The host time of the cache look-ups that led to one compiled variant (on a GPU: as far as it waited
for them), at least a tenth of the profiled step and at least 20 µs per call; and at least 200
guards on that variant, counted in torch's own tree of them. Failed look-ups do not count.

A warning where compiling did not help, or from a quarter of the step on. Otherwise information: a
step can spend a tenth on guards and still be four times as fast as eager.

## What to do
Read fewer Python objects inside: keep numbers in one tensor, and what never changes outside the
compiled function. Where the guards are on the modules themselves and these do not change after the
first calls, torch can leave guards out (`guard_filter_fn`, torch 2.8 and newer). If something
changes anyway, results are silently wrong.

## Settings
- `least_share`: look-ups that take less of the compiled step are not reported (0.1 is a tenth).
- `dear_share`: from this share on it is a warning even where compiling helped.
- `least_us`: look-ups shorter than this (µs per call) are what any compiled call costs.
- `fewest_guards`: code with fewer guards is not reported.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.skip_guard_on_all_nn_modules_unsafe.html
- https://docs.pytorch.org/docs/2.14/user_guide/torch_compiler/compile/programming_model.reducing_guard_overhead.html
- torch/_dynamo/guards.py, `GuardBuilder`
- https://github.com/pytorch/pytorch/issues/185886
- https://github.com/pytorch/pytorch/issues/191753
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from traceview.rules import _recompiles
from traceview.rules._guard_lines import whole_path
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about,
    compile_call,
    first,
    first_rank,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    torch_version,
)

CODE = "TV301"
NEEDS = frozenset({"call_path", "compiles", "guard_costs", "accounting", "step_counts"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"overhead_cache_lookup", "idle_guards"})
#: Many variants of one function: a look-up checks the guards of each until one fits.
FOLLOWS = frozenset({"rc-*", "rc-limit-hit", "ap-many-tensors"})

LEAST_SHARE = 0.10
DEAR_SHARE = 0.25
#: A hundred guards or fewer, the look-up's fixed cost included, take a few µs.
LEAST_US = 20.0
#: A guard takes some 20 ns, one in Python a µs: a long look-up of fewer means a busy machine.
FEWEST_GUARDS = 200
_WAITED = "idle_guards"
_ABOUT = "cache look-ups of a compiled step, as profiled"
#: Guards on plain Python values: the user can reduce these.
_VALUES = frozenset({"EQUALS_MATCH", "CONSTANT_MATCH", "LAMBDA_GUARD"})
_SKIP = (
    "skip = torch.compiler.skip_guard_on_all_nn_modules_unsafe\n"
    'torch.compile(…, options={"guard_filter_fn": skip})  # mode= and options= exclude each other'
)


class _Lookup(msgspec.Struct, frozen=True):
    """The look-ups that led to one compiled variant, and the guards that stand on it."""

    row: Row
    owner: Row
    guards: list[Row]

    @property
    def micros(self) -> float:
        less = self.row["us_less_profiler"]
        return float(self.row["us_per_call"] if less is None else less)

    @property
    def on_values(self) -> bool:
        """Whether most guards compare plain Python values."""
        return 2 * sum(guard["kind"] in _VALUES for guard in self.guards) > len(self.guards)

    def line(self, files: Iterable[str]) -> tuple[Location | None, int]:
        """The line in ``files`` that most guards come from, and how many.

        (None, 0) where most have none. torch cuts the front off the paths in guards.
        """
        known = [file for file in (*files, self.owner["co_filename"]) if file]
        lines: Counter[tuple[str, int]] = Counter()
        for guard in self.guards:
            cut, number = guard["file"], guard["line"]
            if cut and number is not None and (whole := whole_path(cut, known)):
                lines[whole, number] += 1
        if not lines or 2 * lines.total() < len(self.guards):
            return None, 0
        (file, line), count = lines.most_common(1)[0]
        return Location(file, line), count

    def evidence(self, tables: Tables) -> Iterator[Evidence]:
        micros, guards = milliseconds(self.micros / 1000), plural(self.row["guards"], "guard")
        yield Evidence(f"{self.row['compile_id']}: {micros} per look-up, {guards}", "call_path")
        counted = first_rank(rows(tables, "guard_costs", compile_key=self.owner["compile_key"]))
        for row in [row for row in counted if row["source_name"] is not None][:1]:
            timed = "" if row["us"] is None else f": {milliseconds(row['us'] / 1000)} per look-up"
            text = f"{plural(row['guards'], 'guard')} start from {row['source_name']}{timed}"
            yield Evidence(text, "guard_costs")
        for row in [row for row in counted if row["kind"] is not None][:2]:
            text = f"{plural(row['guards'], 'guard')} of kind {row['kind']}"
            yield Evidence(text, "guard_costs")

    @classmethod
    def slowest(cls, tables: Tables) -> _Lookup | None:
        """The variant whose look-ups take most of the step; failed look-ups lead to none."""
        found = first_rank(rows(tables, "call_path", part="cache_lookup"))
        led = [row for row in found if row["compile_id"] is not None and row["guards"]]
        row = max(led, key=lambda row: row["ms"] or 0.0, default=None)
        if row is None:
            return None
        compiles = first_rank(rows(tables, "compiles", compile_id=row["compile_id"]))
        owner = next((each for each in reversed(compiles) if each["is_forward"] is not False), None)
        if owner is None:
            return None
        return cls(row, owner, rows(tables, "guards", compile_key=owner["compile_key"]))


def check(
    tables: Tables,
    *,
    least_share: float = LEAST_SHARE,
    dear_share: float = DEAR_SHARE,
    least_us: float = LEAST_US,
    fewest_guards: int = FEWEST_GUARDS,
) -> Iterator[Finding]:
    """At most one finding: the code whose look-ups take longest."""
    counts, lookup = first(tables, "step_counts", stance="compiled"), _Lookup.slowest(tables)
    if counts is None or not counts["step_ms"] or lookup is None:
        return
    # What of the look-ups holds the step up: on a GPU only that for which it waited.
    spent = lookup.micros * (lookup.row["calls"] or 0.0) / 1e3
    if counts["device_busy_ms"] is not None:
        accounting = first_rank(rows(tables, "accounting", stance="compiled"))
        idle = (row["profiled_ms"] or 0.0 for row in accounting if row["category"] == _WAITED)
        spent = min(spent, sum(idle))
    share = min(1.0, spent / counts["step_ms"])
    many = lookup.row["guards"] >= fewest_guards and lookup.micros >= least_us
    if not many or share < least_share:
        return
    dear = share >= dear_share or outcome(tables) != "helped"
    place, own = lookup.line(tables["sources"]["file"])
    regions = first_rank(rows(tables, "regions", region_id=lookup.row["region_id"]))
    guards, calls = plural(lookup.row["guards"], "guard"), lookup.row["calls"] or 0.0
    micros = milliseconds(lookup.micros / 1000)
    often = "once" if round(calls, 1) == 1.0 else f"{calls:.3g} times"
    filters = (torch_version(tables) or (0, 0)) >= (2, 8)  # the torch that ran can leave guards out
    remedy = "Read fewer Python objects inside the compiled function."
    if lookup.on_values and own:
        remedy = (
            "Every Python value that this line reads gets a guard of its own: keep the values in "
            "one tensor, or combine them once outside the compiled function."
        )
    elif filters:
        remedy += (
            " Or, where no module changes once compiled, leave the modules' guards out. Unsafe: if "
            "a module changes anyway, results are wrong without any message."
        )
    yield Finding(
        code=CODE,
        rule="gd-guard-overhead",
        severity="warning" if dear else "info",
        title=(
            f"Checking {guards} before {_recompiles.called(lookup.owner)} takes "
            f"{percent(share)} of the compiled step"
        ),
        explanation=(
            f"A look-up takes {micros}, {often} per step: everything that was read during tracing "
            "is checked before each call."
            + (f" {own:,} of the guards come from this line." if own else "")
        ),
        cost=Cost(spent, None, _ABOUT),
        confidence="measured",
        location=place or compile_call(next(iter(regions), None)),
        evidence=tuple(lookup.evidence(tables)),
        what_to_do=remedy,
        snippet=Snippet("python", _SKIP) if filters and not lookup.on_values else None,
        remedy=("guards=skip",) if filters and not lookup.on_values else (),
        about=about(lookup.owner),
    )
