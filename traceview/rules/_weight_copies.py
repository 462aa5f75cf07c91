"""Weights that generated code copies in every call: what rules on table ``weight_copies`` share."""

from __future__ import annotations

from dataclasses import dataclass

from traceview.rules._gain import locations
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Evidence,
    Location,
    Row,
    Severity,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    severity,
    short,
    size,
    step_ms,
)

#: Only inference graphs have such copies: their weights can become constants.
FREEZING = ("torch._inductor.config.freezing=True", "no_grad")


@dataclass(frozen=True)
class Copied:
    """All weights that are copied for one reason; ``rows``: kernels, those that take longest first.

    ``ms`` of a step, and that ``share`` of it in words.
    """

    rows: list[Row]
    ms: float
    share: str
    places: list[Location]
    about: frozenset[str]
    severity: Severity

    @property
    def where(self) -> str:
        return f" at {short(self.places[0])}" if self.places else ""

    @property
    def weights(self) -> str:
        """How many, and how much."""
        number, moved = (sum(row[name] for row in self.rows) for name in ("weights", "bytes"))
        return f"{plural(number, 'weight')}, {size(moved)}"

    def evidence(self, copies: str) -> tuple[Evidence, ...]:
        """``copies``: what a kernel does with them."""
        return tuple(
            from_row(
                f"{row['kernel_name']} {copies} {plural(row['weights'], 'weight')}, "
                f"{size(row['bytes'])}: {milliseconds(row['ms'])} of a step",
                "weight_copies",
                row,
            )
            for row in self.rows[:MOST_EVIDENCE]
        )


def copied(tables: Tables, why: str, least_share: float) -> Copied | None:
    """What is copied because of ``why``; None where that takes less of a compiled step."""
    step = step_ms(tables, "compiled")
    found = sorted(first_rank(rows(tables, "weight_copies", why=why)), key=lambda row: -row["ms"])
    ms = sum(row["ms"] for row in found)
    if not step or not found or ms < least_share * step:
        return None
    return Copied(
        found,
        ms,
        percent(ms / step),
        locations(text for row in found for text in row["user_lines"] or ()),
        about(*of_keys(tables, {row["compile_key"] for row in found})),
        "info" if outcome(tables) == "helped" else severity(tables, ms),
    )
