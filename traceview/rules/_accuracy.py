"""What a trial of eager against compiled outputs found, callable by callable."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from traceview.rules import _places
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Location
from traceview.tables import Tables

RESULT = Cost(about="results, not time")
LOW = ("bfloat16", "float16")
_ROUNDED = "with eager's random numbers and roundings"


class Trial(msgspec.Struct, frozen=True):
    """One compiled callable whose outputs were compared. Rows are of ``output_checks``."""

    region: Row | None
    told: Row
    checks: tuple[Row, ...]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return (self.region and self.region["name"]) or "callable"

    @property
    def place(self) -> Location | None:
        """The torch.compile call."""
        return _places.compile_call(self.region) if self.region else None

    def of(self, run: str) -> list[Row]:
        """The outputs of one run; none where it failed."""
        return [row for row in self.checks if row["run"] == run and row["same"] is not None]

    @property
    def judged(self) -> list[Row]:
        """Compiled outputs; where random numbers may set them apart, those with eager's."""
        found = self.of("compiled")
        if self.told["draws_random"] and not all(row["same"] for row in found):
            return self.of("fallback_random")
        return found

    @property
    def wavering(self) -> frozenset[str]:
        """Outputs in which eager does not agree with itself."""
        return frozenset(row["output"] for row in self.of("eager_again") if not row["same"])

    @property
    def rungs(self) -> list[tuple[str, list[Row]]]:
        """Stages of the compiler in their order, with the outputs of each that ran."""
        found: dict[str, list[Row]] = {}
        for row in self.of("ladder"):
            found.setdefault(row["backend"], []).append(row)
        return list(found.items())

    @property
    def rounds_elsewhere(self) -> bool:
        """Whether every stage is right with eager's random numbers and roundings."""
        climbed = [row["same"] for row in self.checks if row["run"] == "ladder"]
        return bool(climbed) and all(same is True for same in climbed)

    @property
    def fails_at(self) -> tuple[str, list[Row]] | None:
        """The first stage that is beyond the limit, with the outputs in which it is."""
        for backend, found in self.rungs:
            if beyond := [row for row in found if not row["same"]]:
                return backend, beyond
        return None


def trials(tables: Tables) -> list[Trial]:
    """Those of the first rank that were carried out."""
    regions = {(row["pid"], row["region_id"]): row for row in rows(tables, "regions")}
    checks = rows(tables, "output_checks")
    found = []
    for told in first_rank(rows(tables, "output_trials")):
        key = (told["pid"], told["region_id"])
        mine = tuple(row for row in checks if (row["pid"], row["region_id"]) == key)
        if told["compared"]:
            found.append(Trial(regions.get(key), told, mine))
    return found


def error(row: Row) -> float | None:
    """Root mean square error against float64, else the difference from eager."""
    value: float | None = row["rmse"] if row["rmse"] is not None else row["rms_diff"]
    return value


def share(row: Row) -> float:
    """That error as part of the values' own root mean square; 0 where there are no numbers."""
    return (error(row) or 0.0) / row["scale"] if row["scale"] else 0.0


def worst(found: list[Row]) -> Row:
    """The output that is furthest off."""
    return max(found, key=lambda row: (row["same"] is False, _distance(row)))


def _distance(row: Row) -> tuple[float, float]:
    return float(row["differing"] or 0), share(row)


def told(row: Row) -> str:
    """An output beside eager and float64, every number named."""
    if row["why"]:
        return f"{row['output']}: {row['why']}"
    text = f"{row['output']} ({row['dtype']})"
    if row["max_abs_diff"] is None:
        return f"{text}: {row['differing'] or 0:,} of {row['elements'] or 0:,} elements differ"
    text += f": largest difference from eager {row['max_abs_diff']:.2g}"
    if row["rmse"] is not None and row["eager_rmse"] is not None:
        text += f", RMSE against float64 {row['rmse']:.2g}, of eager {row['eager_rmse']:.2g}"
    if row["differing"]:
        text += f"; {row['differing']:,} elements NaN or infinite on one side only"
    return text


def ladder(trial: Trial) -> Iterator[Evidence]:
    """The stages of the compiler one after the other."""
    for backend, found in trial.rungs:
        bad = [row for row in found if not row["same"]]
        text = f"wrong: {told(worst(bad))}" if bad else "right"
        yield Evidence(f'backend="{backend}", {_ROUNDED}: {text}', "output_checks")
