"""What the rules on slow generated kernels share: rows of ``slow_loops`` that cost something."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from traceview.rules._gain import locations
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Location,
    Row,
    Severity,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity_of_loss,
    step_ms,
)
from traceview.words.text import listed

#: Column with what they lose → why it is at most that.
_POTENTIAL = {
    "repeated_ms": "at most, by the eager operators' time for as many values",
    "drawn_ms": "what they take in generated kernels less the eager operators' time for as many",
    "unfilled_ms": "at most, by the part of the vectors that holds nothing",
    "converted_ms": "at most, by the part of the kernel's instructions that convert",
    "idle_ms": "at most, by the part of the device that has nothing to do meanwhile",
}
#: Part of a compiled step from which a loss is ranked by its cost, whatever compiling gained.
MUCH = 0.20


class Slow(NamedTuple):
    """Kernels that are slow for one reason: what they take and lose of a step, ms, and where.

    ``potential``: why what they lose is at most that, where it is no part of the difference from
    eager.
    """

    rows: list[Row]
    ms: float
    lost_ms: float
    potential: str
    places: list[Location]
    about: frozenset[str]

    @property
    def functions(self) -> str:
        """``tanh, exp and sin``: as the reports write them, those of the slowest kernel first."""
        names = list(dict.fromkeys(name for row in self.rows for name in row["functions"]))
        return listed(names)

    @property
    def cost(self) -> Cost:
        about = "generated kernels less the eager operators that they replaced"
        return Cost(self.lost_ms, None, self.potential or about)

    def loss(self, tables: Tables) -> str:
        """``0.3 ms slower than eager (12% of the step)``; where it is at most that, ``up to``."""
        share = percent(self.lost_ms / (step_ms(tables, "compiled") or 1.0))
        if self.potential:
            return f"up to {milliseconds(self.lost_ms)} of the step ({share})"
        return f"{milliseconds(self.lost_ms)} slower than eager ({share} of the step)"

    def severity(self, tables: Tables) -> Severity:
        """By the cost; information where compiling helped: the loss is less than the gain."""
        return severity_of_loss(tables, self.lost_ms)

    def weighs(self, tables: Tables) -> bool:
        """Whether it is so much of a compiled step that it counts though compiling helped."""
        return self.lost_ms >= MUCH * (step_ms(tables, "compiled") or 1.0)

    def evidence(self, how: str) -> tuple[Evidence, ...]:
        """A line for each of the slowest kernels; ``how`` functions are computed, of a row."""
        found = []
        for row in self.rows[:MOST_EVIDENCE]:
            n = row["evaluations"]
            often = "/".join(row["functions"]) or "arithmetic"
            often = f"{n:,} {often} a run" if n else often
            took = f", {milliseconds(row['ms'])} of a step" if row["ms"] is not None else ""
            found.append(
                from_row(
                    f"{row['kernel_name']}: {often}, {how.format(**row)}{took}", "slow_loops", row
                )
            )
        return tuple(found)


def slow(
    tables: Tables,
    why: Collection[str],
    least_share: float,
    compiles: Collection[str] = (),
    *,
    cost: str = "slower_ms",
) -> Slow | None:
    """Kernels slow for a reason in ``why``; None where they lose less of a compiled step.

    Those of ``compiles`` (keys) alone, if any are given. ``cost``: the column that says so.
    """
    step = step_ms(tables, "compiled")
    known = [row for row in first_rank(rows(tables, "slow_loops")) if row["why"] in why]
    known = [row for row in known if not compiles or row["compile_key"] in compiles]
    found = sorted((row for row in known if row[cost]), key=lambda row: -row[cost])
    lost = sum(row[cost] for row in found)
    if not step or not found or lost < least_share * step:
        return None
    return Slow(
        found,
        sum(row["ms"] or 0.0 for row in found),
        lost,
        _POTENTIAL.get(cost, ""),
        locations(text for row in found for text in row["user_lines"] or ()),
        about(*of_keys(tables, {row["compile_key"] for row in found})),
    )


def kernels(found: Slow) -> str:
    """``1 generated kernel``, ``5 generated kernels``: those of one name are variants of one."""
    return plural(len({row["kernel_name"] for row in found.rows}), "generated kernel")
