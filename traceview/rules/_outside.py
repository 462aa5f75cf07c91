"""What a compiled step does outside of compiled code: loading, Python, copies, eager operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec
import polars as pl
from msgspec.structs import replace

from traceview.derive.causes import UNNAMED
from traceview.rules import _places
from traceview.rules._rows import first, first_rank, frame, rows
from traceview.rules.finding import Location
from traceview.tables import Tables
from traceview.torchtext.marks import BACKWARD, DATA_LOADER, OPTIMIZER, OPTIMIZER_STEP

Kind = Literal["loading", "python", "copies", "operators"]

#: Categories of table ``accounting`` of those that have any: of a host, and of a device that waits
#: for the host.
_CATEGORIES: dict[Kind, tuple[str, ...]] = {
    "loading": ("data_loading", "idle_data_loading"),
    "python": ("python", "idle_python"),
    "copies": ("idle_copy_wait",),
}
_COLLECTIVE = "c10d::"
#: Shorter stretches are the way from one operator to the next, not work of their own.
SHORT_PYTHON_MS = 0.05


class Part(msgspec.Struct, frozen=True):
    """One kind of work outside; ``places``: the user's lines with their time, dearest first."""

    kind: Kind
    ms: float
    places: tuple[Location, ...]
    what: str = ""

    def scaled(self, factor: float) -> Part:
        return replace(self, ms=self.ms * factor)


class ThreadShares(NamedTuple):
    """Parts of a step, 0 to 1: no processor was wanted; one was, and others had it."""

    waiting: float
    queued: float


def parts(tables: Tables) -> list[Part]:
    """The parts of a compiled step as accounted for, dearest first."""
    found = (*_loading(tables), *_python(tables), *_copies(tables))
    return sorted((part for part in found if part.ms > 0), key=lambda part: -part.ms)


def operators(tables: Tables) -> Part:
    """Work of operators that no compiled graph holds, with an optimizer's class if it is its step.

    What waits is none, nor Python; an optimizer's mark lies around its operators.
    """
    details = _in_eager(tables)
    ms, steps = float(details["ms"].sum()), first(tables, "step_counts", stance="compiled")
    marks = frame(tables, "cpu_ops", stance="compiled").filter(
        pl.col("step").is_not_null() & pl.col("name").str.starts_with(OPTIMIZER_STEP)
    )
    spent = float(marks["duration_ns"].sum()) / 1e6 / ((steps and steps["steps"]) or 1)
    name = (
        marks["name"][0].removeprefix(OPTIMIZER_STEP).removesuffix(".step") if marks.height else ""
    )
    return Part("operators", ms, tuple(_at(details, "ms")), name if spent >= ms / 2 else "")


def operators_in(tables: Tables, file: str, first_line: int, last_line: int) -> float:
    """Milliseconds of a compiled step in such operators at these lines."""
    at = (pl.col("file") == file) & pl.col("line").is_between(first_line, last_line)
    return float(_in_eager(tables).filter(at)["ms"].sum())


def _in_eager(tables: Tables) -> pl.DataFrame:
    """``account_details`` of the operators of a compiled step that no compiled graph holds."""
    busy = {row["category"] for row in rows(tables, "accounting", stance="compiled", kind="busy")}
    made = pl.col("category").str.starts_with("generated")
    of_no_category = (pl.col("category") == "other") & pl.col("what").str.contains("::")
    return _compiled(tables).filter(
        (pl.col("category").is_in(busy) | of_no_category)
        & ~made
        & ~pl.col("in_graph").fill_null(False)
    )


def accounted_ms(tables: Tables) -> float:
    """What the account of a compiled step finds, all categories together.

    Their parts of it are steadier than their milliseconds beside the timed step: where the machine
    is busy, the profiled steps may be twice as long as the timed ones.
    """
    accounts = first_rank(rows(tables, "accounting", stance="compiled"))
    return sum((row["ms"] or 0.0 for row in accounts if row["kind"] not in UNNAMED), 0.0)


def compiled_share(tables: Tables) -> float | None:
    """Part of a step's host time in compiled callables and their backward; None: not profiled."""
    shares = [row["share"] for row in first_rank(rows(tables, "region_costs"))]
    counts = first(tables, "step_counts", stance="compiled")
    if counts is None or not counts["step_ms"] or not counts["steps"]:
        return None
    backward = frame(tables, "cpu_ops", stance="compiled").filter(
        pl.col("step").is_not_null(), name=BACKWARD
    )
    ms = float(backward["duration_ns"].sum()) / 1e6 / counts["steps"]
    return float(sum(share for share in shares if share) + ms / counts["step_ms"])


def calling(tables: Tables) -> frozenset[Location]:
    """The user's own lines that call compiled callables."""
    found = (_places.first_call(row) for row in first_rank(rows(tables, "regions")))
    return frozenset(Location(place.file, place.line) for place in found if place)


def thread_shares(tables: Tables) -> ThreadShares | None:
    """How the step's thread spent compiled blocks, as parts of their time; None: not recorded."""
    blocks = [
        row
        for row in first_rank(rows(tables, "blocks", stance="compiled"))
        if row["pair_index"] is not None and row["host_ms"] and row["thread_ms"] is not None
    ]
    host, used, queued = (
        sum(row[key] or 0.0 for row in blocks) for key in ("host_ms", "thread_ms", "queued_ms")
    )
    return ThreadShares(max(0.0, host - used - queued) / host, queued / host) if host else None


def _loading(tables: Tables) -> Iterator[Part]:
    ms = _ms(tables, "loading")
    ops = frame(tables, "line_ops", stance="compiled")
    marks = ops.filter(pl.col("name").str.starts_with(DATA_LOADER))
    places = [*_at(_asking(ops, marks), "duration_ns"), *_at(_inside(ops, marks), "self_ns")]
    found = frame(tables, "account_details", stance="compiled").filter(
        pl.col("what").str.starts_with(DATA_LOADER)
    )
    what = str(found["what"][0]).removeprefix(DATA_LOADER) if found.height else ""
    yield Part("loading", ms, tuple(dict.fromkeys(places)), what)


def _asking(ops: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """``marks`` with the user's line that began last before each: the loop that wants a batch."""
    lines = ops.filter(pl.col("kind") == "line").select("tid", "start_ns", "file", "line")
    return marks.select("tid", "start_ns", "duration_ns").sort("start_ns").join_asof(
        lines.sort("start_ns"), on="start_ns", by="tid", check_sortedness=False
    )  # fmt: skip


def _inside(ops: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """The user's lines that ran while a batch was fetched, in the same thread."""
    spans = marks.select("tid", "start_ns", until=pl.col("start_ns") + pl.col("duration_ns"))
    lines = ops.filter(pl.col("kind") == "line").sort("start_ns")
    joined = lines.join_asof(
        spans.sort("start_ns").with_columns(begun="start_ns"),
        on="start_ns", by="tid", check_sortedness=False,
    )  # fmt: skip
    return joined.filter(pl.col("start_ns").is_between("begun", "until", closed="none"))


def _python(tables: Tables) -> Iterator[Part]:
    long = pl.col("ms") >= SHORT_PYTHON_MS * pl.col("count").fill_null(1)
    of_optimizer = pl.col("what").str.starts_with(OPTIMIZER).fill_null(False)
    details = _details(tables, "python").filter(long & ~of_optimizer)
    # A host that stands at a collective waits for other ranks; no event of the profile says so.
    collectives = _compiled(tables).filter(pl.col("what").str.starts_with(_COLLECTIVE))
    details = details.join(collectives, on=["file", "line"], how="anti")
    yield Part("python", float(details["ms"].sum()), tuple(_at(details, "ms")))


def _copies(tables: Tables) -> Iterator[Part]:
    """Copies to a device, where they hold the host (pageable memory)."""
    details = _details(tables, "copies")
    if details.is_empty():
        return
    to_device = (pl.col("category") == "copy") & (pl.col("what") == "copy to the device")
    details = pl.concat([details, _compiled(tables).filter(to_device)])
    yield Part("copies", float(details["ms"].sum()), tuple(_at(details, "ms")))


def _details(tables: Tables, kind: Kind) -> pl.DataFrame:
    return _compiled(tables).filter(pl.col("category").is_in(_CATEGORIES[kind]))


def _compiled(tables: Tables) -> pl.DataFrame:
    """``account_details`` of the compiled step of the first rank."""
    details = frame(tables, "account_details", stance="compiled")
    lowest = pl.lit(details["rank"].min(), dtype=pl.Int32)
    return details.filter(pl.col("rank").eq_missing(lowest))


def _ms(tables: Tables, kind: Kind) -> float:
    accounts = first_rank(rows(tables, "accounting", stance="compiled"))
    return sum((row["ms"] or 0.0 for row in accounts if row["category"] in _CATEGORIES[kind]), 0.0)


def _at(found: pl.DataFrame, column: str) -> list[Location]:
    """The lines of ``found``, by the sum of ``column``, dearest first."""
    known = found.drop_nulls(["file", "line"]).group_by("file", "line", maintain_order=True)
    order = known.agg(pl.col(column).sum()).sort(column, descending=True, maintain_order=True)
    return [Location(file, line) for file, line in order.select("file", "line").iter_rows()]
