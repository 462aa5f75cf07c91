"""What rules about accuracy share: compared callables, and their outputs in words."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from traceview.derive.facts.outputs import relative_error
from traceview.rules.finding import RESULT as RESULT
from traceview.rules.kit import (
    Evidence,
    Location,
    Row,
    Tables,
    compile_call,
    first_rank,
    rows,
)
from traceview.tables import grouped


def compiles_of(tables: Tables, region_id: int) -> list[Row]:
    """Rows of ``compile_regions`` that are of a region, or of one that is not known."""
    return [row for row in rows(tables, "compile_regions") if row["region_id"] in (region_id, None)]


class Compared(msgspec.Struct, frozen=True):
    """A compiled callable whose outputs were compared: its row of ``output_verdicts``, and others.

    ``checks`` are its rows of ``output_checks``.
    """

    verdict: Row
    region: Row | None
    checks: tuple[Row, ...]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return (self.region and self.region["name"]) or "callable"

    @property
    def place(self) -> Location | None:
        """The torch.compile call."""
        return compile_call(self.region)

    def of(self, run: str) -> list[Row]:
        """The outputs of one run; none where it failed."""
        return [row for row in self.checks if row["run"] == run and row["same"] is not None]

    @property
    def judged(self) -> list[Row]:
        """Compiled outputs; where random numbers may explain a difference, those with eager's."""
        return self.of(self.verdict["judged_run"])

    @property
    def stages(self) -> dict[str, list[Row]]:
        """Outputs of each stage of the compiler that ran, in order."""
        return grouped(self.of("ladder"), "backend")

    def proof(self) -> Iterator[Evidence]:
        """The stages of the compiler, in order."""
        for backend, found in self.stages.items():
            bad = [row for row in found if not row["same"]]
            text = f"wrong: {described(worst(bad))}" if bad else "right"
            how = f'backend="{backend}", with eager\'s random numbers and roundings'
            yield Evidence(f"{how}: {text}", "output_checks")


def compared(tables: Tables) -> list[Compared]:
    """The callables of the first rank whose outputs were compared."""
    regions = {(row["pid"], row["region_id"]): row for row in rows(tables, "regions")}
    checks = grouped(rows(tables, "output_checks"), "pid", "region_id")
    return [
        Compared(verdict, regions.get(key), tuple(checks.get(key, ())))
        for verdict in first_rank(rows(tables, "output_verdicts"))
        for key in [(verdict["pid"], verdict["region_id"])]
        if verdict["outcome"] != "not_compared"
    ]


def worst(found: list[Row]) -> Row:
    """The output that is furthest off."""
    return max(
        found,
        key=lambda row: (row["same"] is False, row["differing"] or 0, relative_error(row)),
    )


def result_name(output: str) -> str:
    """``gradient of weight `head.bias```: the name of what the gradient is of, as code."""
    for kind in ("gradient of weight ", "gradient of "):
        if output.startswith(kind):
            return f"{kind}`{output.removeprefix(kind)}`"
    return output


def described(row: Row) -> str:
    """An output compared with eager and float64, every number named."""
    name = result_name(row["output"])
    if row["why"]:
        return f"{name}: {row['why']}"
    text = f"{name} ({row['dtype']})"
    if row["max_abs_diff"] is None:
        return f"{text}: {row['differing'] or 0:,} of {row['elements'] or 0:,} elements differ"
    text += f": largest difference from eager {row['max_abs_diff']:.2g}"
    if row["rmse"] is not None and row["eager_rmse"] is not None:
        text += f", RMSE against float64 {row['rmse']:.2g}, of eager {row['eager_rmse']:.2g}"
    if row["differing"]:
        text += f"; {row['differing']:,} elements NaN or infinite on one side only"
    return text
