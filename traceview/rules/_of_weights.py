"""What generated code does with weights in every call: what the rules on that share."""

from __future__ import annotations

from dataclasses import dataclass

from traceview.rules._gain import at_first, locations
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Evidence,
    Location,
    Row,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    size,
    step_ms,
)

#: Only of inference graphs: their weights can become constants.
FREEZING = ("torch._inductor.config.freezing=True", "no_grad")


@dataclass(frozen=True)
class OfWeights:
    """All that is done for one reason; ``rows`` of ``table``: kernels, the slowest first.

    ``ms`` of a step, and that ``share`` of it in words.
    """

    table: str
    rows: list[Row]
    ms: float
    share: str
    places: list[Location]
    about: frozenset[str]

    @property
    def where(self) -> str:
        return at_first(*self.places)

    @property
    def weights(self) -> str:
        """How many, and how much."""
        number, moved = (sum(row[name] for row in self.rows) for name in ("weights", "bytes"))
        return f"{plural(number, 'weight')}, {size(moved)}"

    def evidence(self, does: str) -> tuple[Evidence, ...]:
        """``does``: what a kernel does with them."""
        return tuple(
            from_row(
                f"{row['kernel_name']} {does} {plural(row['weights'], 'weight')}, "
                f"{size(row['bytes'])}: {milliseconds(row['ms'])} of a step",
                self.table,
                row,
            )
            for row in self.rows[:MOST_EVIDENCE]
        )


def of_weights(tables: Tables, table: str, least_share: float, **equal: object) -> OfWeights | None:
    """Rows of ``table`` with such columns; None where they take less of a compiled step."""
    step = step_ms(tables, "compiled")
    known = (row for row in first_rank(rows(tables, table, **equal)) if row["ms"])
    found = sorted(known, key=lambda row: -row["ms"])
    ms = sum(row["ms"] for row in found)
    if not step or not found or ms < least_share * step:
        return None
    return OfWeights(
        table,
        found,
        ms,
        percent(min(1.0, ms / step)),
        locations(text for row in found for text in row["user_lines"] or ()),
        about(*of_keys(tables, {row["compile_key"] for row in found})),
    )
