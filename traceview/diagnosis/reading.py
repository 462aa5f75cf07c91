"""What was read, what could not be read, and where the raw material lies."""

from __future__ import annotations

from itertools import islice

import polars as pl

from traceview.diagnosis.model import Reading, ReadingRow
from traceview.run import Run
from traceview.tables import Tables

MOST_ROWS = 100
MOST_LINKS = 60


def reading(tables: Tables) -> Reading:
    """Records of the structured logs, unknown ones, and all damage of every file."""
    records = tables["log_records"]
    damage = tables["unreadable"].sort("times", descending=True)
    unknown = records.filter(~pl.col("known").fill_null(True))
    return Reading(
        records=int(records["records"].sum()),
        unreadable=int(damage["times"].sum()),
        unknown_records=int(unknown["records"].sum()),
        rows=tuple(
            ReadingRow(
                file=row["file"] or "?",
                kind=row["kind"] or "unknown",
                times=row["times"] or 0,
                first_line=row["first_line"],
                example=row["example"],
            )
            for row in damage.head(MOST_ROWS).iter_rows(named=True)
        ),
    )


def links(run: Run) -> dict[str, str]:
    """Title → path relative to the run folder: tlparse's reports, profiler traces and raw logs."""
    found: dict[str, str] = {}
    for index in islice(sorted((run.folder / "tlparse").glob("**/index.html")), MOST_LINKS):
        where = index.parent.relative_to(run.folder / "tlparse").as_posix()
        found[f"tlparse: {where}"] = run.relative(index)
    for record in run.manifest.passes:
        raw = run.raw(record)
        for title, pattern in (
            ("text log", "torch_logs.txt"),
            ("stderr", "stderr.txt"),
            ("profiler trace", "profile/*.json.gz"),
            ("structured log", "structured/*"),
        ):
            for path in islice(sorted(raw.glob(pattern)), MOST_LINKS):
                found[f"{record.name}: {title} {path.name}"] = run.relative(path)
    return dict(islice(found.items(), 2 * MOST_LINKS))
