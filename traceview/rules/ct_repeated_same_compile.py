"""
## What it finds
The same function compiled for the same inputs again and again, because `torch.compiler.reset()`
throws away what was compiled.

## Why it costs
After a reset Dynamo traces the function anew, and the backend compiles it, or loads it from its
cache at best. No guard has failed and nothing has changed: it is time for nothing.

## Evidence
Three or more compiles of one function after resets whose captured graphs are the same, shapes
included, with no recompile between them. Where compiling never went quiet, the cost is what a
compiled step takes more than an eager one, measured. From the fifth compile on it is taken to go
on: all compiles but the first, spread over the steps. Else it is their seconds, once.

A warning where that is dear for a step, or a quarter or more of a job whose length is known; else
information. Resets between models, modes or shapes are what they are made for: their graphs differ.

## What to do
Take the reset out of what runs often. To free memory, drop the compiled callable itself; to limit
the number of variants, see what makes them.

## Settings
- `fewest_compiles`: of the same graph, from which on it is mentioned

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.reset.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/__init__.py, `reset`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _places, _recompiles, _starts
from traceview.rules._evidence import from_row, milliseconds, plural, seconds
from traceview.rules._requests import eager_steps
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Finding, Location, Severity
from traceview.tables import Tables

CODE = "TV608"
NEEDS = frozenset({"compiles", "graphs"})

#: Two may be a comparison of settings; the third is a habit.
FEWEST_COMPILES = 3
#: From here on it is taken to go on for the whole job.
_GOES_ON = 5


def check(tables: Tables, *, fewest_compiles: int = FEWEST_COMPILES) -> Iterator[Finding]:
    """One finding a place that resets: every function that it made torch compile again."""
    repeats = [found for found in _same(tables) if len(found) >= fewest_compiles]
    if repeats:
        yield _finding(tables, sorted(repeats, key=_again_s, reverse=True))


def _same(tables: Tables) -> list[list[Row]]:
    """Compiles of one process, function and graph, one an epoch (a reset begins the next)."""
    graphs = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    texts = {row["compile_key"]: row["text"] for row in graphs}
    groups: dict[tuple[object, ...], dict[int | None, Row]] = {}
    for row in first_rank(rows(tables, "compiles", is_forward=True)):
        text = texts.get(row["compile_key"])
        if text is not None:
            key = (row["pid"], *_recompiles.frame_of(row), row["co_name"], text)
            groups.setdefault(key, {}).setdefault(row["epoch"], row)
    return [list(group.values()) for group in groups.values()]


def _again_s(compiles: list[Row]) -> float:
    """Seconds of all compiles but the first."""
    return sum(_costs.own_us(row) or 0.0 for row in compiles[1:]) / 1e6


def _finding(tables: Tables, repeats: list[list[Row]]) -> Finding:
    dearest = repeats[0]
    cost, confidence, grade = _cost(tables, sum(map(_again_s, repeats)), len(dearest))
    name = _recompiles.function_name(dearest[0]["co_name"])
    resets = first_rank(rows(tables, "resets"))
    place = _reset_call(resets) or _places.Owners(tables).code(dearest[0]).place
    return Finding(
        code=CODE,
        rule="ct-repeated-same-compile",
        severity=grade,
        title=(
            f"{_recompiles.opening(name)} is compiled {len(dearest)} times for the same inputs: "
            "resets throw it away"
        ),
        explanation=(
            "torch.compiler.reset() drops all compiled code of the process, so the next call "
            "compiles again what it had. The captured graphs are the same, shapes included, and "
            "no guard failed."
        ),
        cost=cost,
        confidence=confidence,
        location=place,
        evidence=(
            *_seen(resets),
            *(
                from_row(
                    f"compile {row['compile_id']} after {plural(row['epoch'] or 0, 'reset')}: "
                    f"{seconds((row['duration_us'] or 0.0) / 1e6)}",
                    "compiles",
                    row,
                )
                for row in dearest[:3]
            ),
        ),
        what_to_do=(
            "Take the reset out of what runs often; one before the first call changes nothing "
            "else. To free memory, let go of the compiled callable and its module."
        ),
        about=_places.about(*(found[0] for found in repeats)),
    )


def _cost(tables: Tables, again_s: float, compiles: int) -> tuple[Cost, Confidence, Severity]:
    """The step's loss where compiling never went quiet, else what was spent again."""
    run = first(tables, "runs")
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    if run and run["never_quiet"] and eager is not None and compiled is not None:
        about = (
            f"compiled {milliseconds(compiled)} against eager {milliseconds(eager)}; what compiled "
            "code would save comes on top"
        )
        if compiled > eager:
            return Cost(ms_per_step=compiled - eager, about=about), "derived", "warning"
    steps = (run["steps_seen"] or 0) - eager_steps(tables) if run else 0
    if compiles >= _GOES_ON and steps > 0:
        every = 1e3 * again_s / steps
        about = f"compiling again, spread over {plural(steps, 'compiled step')}"
        return Cost(ms_per_step=every, about=about), "derived", _costs.severity(tables, every)
    about = "all compiles but the first"
    return Cost(seconds=again_s, about=about), "measured", _starts.severity(tables, again_s)


def _reset_call(resets: list[Row]) -> Location | None:
    """The line of the user's that resets most often."""
    places = [(row["file"], row["line"], row["function"]) for row in resets if row["file"]]
    most = max(places, key=places.count, default=None)
    return Location(*most) if most and most[1] is not None else None


def _seen(resets: list[Row]) -> tuple[Evidence, ...]:
    if not resets:
        return ()
    return (Evidence(f"{plural(len(resets), 'reset')} in this run", "resets"),)
