"""
## What it finds
The same function compiled for the same inputs again and again: `torch.compiler.reset()` discards
the compiled code, or the function itself is created again (a module that is reloaded, `exec`).

## Why it costs
Dynamo traces the function again, and the backend compiles it again, or at best loads it from its
cache. Compiled code belongs to a code object, and another one with the same text cannot use it. No
guard has failed and nothing has changed: the time is wasted.

## Evidence
Three or more compiles of one function after resets, or under as many frame ids between two resets,
whose captured graphs are the same, shapes included, with no recompile between them. Where compiling
never went quiet, the cost is what a compiled step takes more than an eager one, measured. From the
fifth compile on the rule assumes that it continues: all compiles but the first, spread over the
steps. Otherwise it is their seconds, once.

A warning where that is much of a step, or at least a quarter of a job whose length is known.
Otherwise information. Resets between models, modes or shapes are fine: their graphs differ.

## What to do
Move the reset out of code that runs often. To free memory, drop the compiled callable itself; to
limit the number of variants, fix what causes them. If the function is created again: create it once
and keep what torch.compile returns, or reload its module only when its file has changed.

## Settings
- `fewest_compiles`: fewer compiles of the same graph are not reported

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.reset.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/__init__.py, `reset`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from traceview.rules import _recompiles, _starts
from traceview.rules.kit import (
    Confidence,
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Row,
    Severity,
    Tables,
    about,
    compile_seconds,
    first,
    first_rank,
    from_row,
    milliseconds,
    plural,
    rows,
    seconds,
    severity,
    step_ms,
)
from traceview.words import names

CODE = "TV608"
NEEDS = frozenset({"compiles", "graphs"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"compiling_again"})

#: Two may be a comparison of settings; the third makes a pattern.
FEWEST_COMPILES = 3
#: From here on the rule assumes that it continues for the whole job.
_GOES_ON = 5
#: Why (in a title), what that means, what to do.
_RESET = (
    "torch.compiler.reset() discards it",
    "torch.compiler.reset() drops all compiled code of the process, so the next call compiles "
    "again what it had.",
    "Move the reset out of code that runs often; one before the first call is enough. To free "
    "memory, drop the compiled callable and its module.",
)
_CREATED_AGAIN = (
    "the function is created again each time",
    "Compiled code belongs to a code object. The function was created again from the same lines "
    "(its module was reloaded, or the text was executed), and so has another code object.",
    "Create the function once and keep what torch.compile returns. If its module is reloaded to "
    "follow its file, do that only when the file has changed.",
)


def check(tables: Tables, *, fewest_compiles: int = FEWEST_COMPILES) -> Iterator[Finding]:
    """One finding per reason, with every function that is compiled again."""
    # Compiles of one function to one graph, one for each time that it had no compiled code: frame
    # ids are those of code objects, and a reset begins the next epoch.
    graphs = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    texts = {row["compile_key"]: row["text"] for row in graphs}
    groups: dict[tuple[object, ...], dict[tuple[object, ...], Row]] = {}
    for row in first_rank(rows(tables, "compiles", is_forward=True)):
        text = texts.get(row["compile_key"])
        if text is not None:
            key = (row["pid"], *_recompiles.frame_of(row), row["co_name"], text)
            groups.setdefault(key, {}).setdefault((row["epoch"], row["frame_id"]), row)

    repeats = [list(own.values()) for own in groups.values() if len(own) >= fewest_compiles]
    repeats.sort(key=_again_s, reverse=True)
    reset: list[list[Row]] = []
    created: list[list[Row]] = []
    for own in repeats:  # otherwise there was another code object each time
        after_resets = len({row["epoch"] for row in own}) > len(own) / 2
        (reset if after_resets else created).append(own)
    if reset:
        yield _finding(tables, reset, first_rank(rows(tables, "resets")), _RESET)
    if created:
        yield _finding(tables, created, [], _CREATED_AGAIN)


def _again_s(compiles: list[Row]) -> float:
    """Seconds of all compiles but the first."""
    return compile_seconds(compiles[1:]) or 0.0


def _finding(
    tables: Tables, repeats: list[list[Row]], resets: list[Row], words: tuple[str, str, str]
) -> Finding:
    compiles, (why, explanation, what_to_do) = repeats[0], words
    cost, confidence, grade = _cost(tables, sum(map(_again_s, repeats)), len(compiles))
    name = _recompiles.opening(names.function(compiles[0]["co_name"]))
    # The line of the user's that resets most often.
    places = [(row["file"], row["line"], row["function"]) for row in resets if row["file"]]
    most = max(places, key=places.count, default=None)
    place = Location(*most) if most and most[1] is not None else None
    evidence = []
    if resets:
        evidence.append(Evidence(f"{plural(len(resets), 'reset')} in this run", "resets"))
    for row in compiles[:3]:
        text = f"compile {row['compile_id']} after {plural(row['epoch'] or 0, 'reset')}"
        took = seconds((row["duration_us"] or 0.0) / 1e6)
        evidence.append(from_row(f"{text}: {took}", "compiles", row))
    return Finding(
        code=CODE,
        rule="ct-repeated-same-compile",
        severity=grade,
        title=f"{name} is compiled {len(compiles)} times for the same inputs: {why}",
        explanation=(
            f"{explanation} The captured graphs are the same, shapes included, and no guard failed."
        ),
        cost=cost,
        confidence=confidence,
        location=place or Owners(tables).code(compiles[0]).place,
        evidence=tuple(evidence),
        what_to_do=what_to_do,
        about=about(*(own[0] for own in repeats)),
    )


def _cost(tables: Tables, again_s: float, compiles: int) -> tuple[Cost, Confidence, Severity]:
    """The step's loss where compiling never went quiet, else what was spent again."""
    run = first(tables, "runs")
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    if run and run["never_quiet"] and eager is not None and compiled is not None:
        about = (
            f"compiled {milliseconds(compiled)}, eager {milliseconds(eager)}; what compiled code "
            "would save comes on top"
        )
        if compiled > eager:
            return Cost(ms_per_step=compiled - eager, about=about), "derived", "warning"

    steps: int = run["steps_seen"] or 0 if run else 0
    if run and run["step_kind"] == "call":
        # Calls of all callables of one line, where one takes over from another.
        anchors, calls = set(), Counter[tuple[str | None, int | None]]()
        for row in first_rank(rows(tables, "regions")):
            line = row["call_file"], row["call_line"]
            calls[line] += row["outermost_calls"] or 0
            if row["is_anchor"]:
                anchors.add(line)
        steps = max(steps, sum(calls[line] for line in anchors))
    steps -= _starts.eager_steps(tables)
    if compiles >= _GOES_ON and steps > 0:
        every = 1e3 * again_s / steps
        about = f"compiling again, spread over {plural(steps, 'compiled step')}"
        return Cost(ms_per_step=every, about=about), "derived", severity(tables, every)
    about = "all compiles but the first"
    return Cost(seconds=again_s, about=about), "measured", _starts.severity(tables, again_s)
