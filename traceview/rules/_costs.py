"""What things cost: milliseconds of a step, seconds of compiling, and when that is much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from operator import itemgetter

from traceview.derive.facts.rows import Row, first_rank, rows
from traceview.derive.facts.steps import is_timed, outcome, step_ms
from traceview.rules.finding import Cost, Severity
from traceview.tables import Tables
from traceview.words.numbers import times

#: Below 5 % of a step a change is hard to tell from noise in paired blocks (interval about ±3 %).
DEAR_SHARE = 0.05
#: On steps so long that 5 % is seldom reached, 0.05 ms is still what five launches cost …
DEAR_MS = 0.05
#: … but what is below 1 % of a step is not seen in any measurement.
UNSEEN_SHARE = 0.01
#: In a step that compiling slows down, a fifth of what is lost is worth a warning.
LOST_SHARE = 0.20


def severity(tables: Tables, ms_per_step: float | None) -> Severity:
    """Warning where it costs much, or where the cost is not known; else info."""
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    if ms_per_step is None or compiled is None or not is_timed(tables):
        return "warning"
    dear = min(DEAR_SHARE * compiled, max(DEAR_MS, UNSEEN_SHARE * compiled))
    lost = compiled - eager if eager is not None and outcome(tables) == "hurt" else 0.0
    if lost > 0:
        dear = min(dear, LOST_SHARE * lost)
    return "warning" if ms_per_step >= dear else "info"


def own_us(compile_: Row) -> float | None:
    """What a compile takes besides logging; None where it was not timed.

    Where torch does not say what the structured log took, that is in it.
    """
    whole: float | None = compile_["duration_us"]
    return None if whole is None else max(0.0, whole - (compile_["logging_us"] or 0.0))


def own_seconds(compiles: Iterable[Row]) -> float | None:
    """Seconds of these compiles besides logging; None where none of them was timed."""
    known = [us for row in compiles if (us := own_us(row)) is not None]
    return sum(known) / 1e6 if known else None


def compile_seconds(tables: Tables, keys: Collection[str]) -> float | None:
    """Seconds of the compiles with these ``compile_key``s, first rank; None where not recorded."""
    return own_seconds(_compiles(tables, keys))


def _compiles(tables: Tables, keys: Collection[str]) -> list[Row]:
    """In the table's order: a cause has a few of many thousands of compiles."""
    by_key = tables.once(_numbered)
    found = sorted(
        (numbered for key in set(keys) for numbered in by_key.get(key, ())), key=itemgetter(0)
    )
    return first_rank([row for _, row in found])


def _numbered(tables: Tables) -> dict[str | None, list[tuple[int, Row]]]:
    found: dict[str | None, list[tuple[int, Row]]] = defaultdict(list)
    for number, row in enumerate(rows(tables, "compiles")):
        found[row["compile_key"]].append((number, row))
    return found


def compiled_again(tables: Tables, keys: Collection[str], *, but_one: bool = False) -> Cost:
    """What these recompiles cost that a remedy saves; ``but_one``: it needs one more graph itself.

    A recompile that met the limit compiled nothing.
    """
    refused = {row["compile_key"] for row in rows(tables, "compiles", outcome="limit")}
    done = {key for key in keys if key not in refused}
    spent, about = compile_seconds(tables, done), f"compiling it again {times(len(done))}"
    if any(row["logging_us"] is None for row in _compiles(tables, done)):
        about += ", with what writing logs took"
    if but_one and len(done) > 1:
        spent = None if spent is None else spent * (len(done) - 1) / len(done)
        about += ", less the once that a graph for all sizes takes"
    if more := len(set(keys) - done):
        about += f"; the recompile limit refused {more} more"
    return Cost(seconds=spent, about=about)
