"""What rules about the gain of a compiled step share: idle time, launches, lines and names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from traceview.derive.facts.rows import called_in
from traceview.derive.facts.slow_switches import FUSED_ATTENTION
from traceview.rules._recompiles import readable
from traceview.rules.kit import (
    Cost,
    Location,
    Row,
    Tables,
    first_rank,
    frame,
    milliseconds,
    rows,
    short,
    step_ms,
)
from traceview.torchtext import marks
from traceview.torchtext.fx import Graph

#: In ``shape_gains``, attention without the causal mask that it had.
IS_CAUSAL = "is_causal=True"
#: Products with rows that begin at multiples of 16 bytes.
ALIGNED = "aligned"
#: A batch of products with one and the same matrix.
ONE_PRODUCT = "one product"
_NO_LETTERS = re.compile(r"[\W_]+")


def idle_ms(tables: Tables, cause: str = "") -> float | None:
    """Idle time of the device in a compiled step as timed, ms; None where no device was profiled.

    ``cause``: only categories of table ``accounting`` whose name contains it.
    """
    return _ms(tables, "idle", cause)


def paced(tables: Tables, ms: float) -> tuple[float, str]:
    """What a compiled step gets shorter by, ms, where kernels take ``ms`` less and are as many.

    No step on a device is shorter than the host's time for it, which the words, behind what a cost
    is about, say; nothing at all is gained where the device ``is_starved``.
    """
    counts = first_rank(rows(tables, "step_counts", stance="compiled"))
    host, step = counts[0]["host_ms"] if counts else None, step_ms(tables, "compiled")
    saved = ms if host is None or step is None else max(0.0, min(ms, step - host))
    if is_starved(tables):
        saved = 0.0
    return saved, "; the host needs the rest of the step" if saved < ms else ""


def slowest_lines(kernels: Iterable[Row]) -> list[Location]:
    """The lines of rows of ``matched_kernels``, those that take longest first."""
    spent: dict[Location, float] = defaultdict(float)
    for row in kernels:
        if row["file"] and row["line"]:
            spent[Location(row["file"], row["line"])] += row["ms"] or 0.0
    return sorted(spent, key=lambda place: -spent[place])


class Timed(NamedTuple):
    """Work of a compiled step that was timed another way, too, on the step's own shapes.

    All ms: ``spent`` in the step, ``base`` as it is, ``less`` the other way, ``saved`` of the step;
    ``pace``: the words of ``paced``.
    """

    spent: float
    base: float
    less: float
    saved: float
    pace: str

    @classmethod
    def of(cls, tables: Tables, gains: list[Row], spent: float) -> Timed:
        """By rows of ``shape_gains``."""
        base, less = (sum(row[key] for row in gains) for key in ("base_ms", "ms"))
        return cls(spent, base, less, *paced(tables, min(spent, base) * (1 - less / base)))

    @classmethod
    def of_category(cls, tables: Tables, gains: list[Row], category: str) -> Timed:
        """The same where it is all of the step's kernels of ``category``."""
        accounts = first_rank(rows(tables, "accounting", stance="compiled", category=category))
        return cls.of(tables, gains, sum(row["ms"] or 0.0 for row in accounts))

    def cost(self, what: str, measured: str) -> Cost:
        """``measured``: both times in words."""
        about = f"of {milliseconds(self.spent)} in {what}, measured: {measured}{self.pace}"
        return Cost(self.saved, None, about)

    def said(self, base: str, less: str) -> str:
        """``0.3 ms as it is, 0.2 ms contiguous``."""
        return f"{milliseconds(self.base)} {base}, {milliseconds(self.less)} {less}"


def is_starved(tables: Tables) -> bool:
    """Whether the device waits for launches for longer than it works.

    Then a shorter kernel saves nothing: the wait for the next launch gets longer by as much.
    """
    return (idle_ms(tables, "launch_bound") or 0.0) > (_ms(tables, "busy", "") or 0.0)


def _ms(tables: Tables, kind: str, cause: str) -> float | None:
    accounts = first_rank(rows(tables, "accounting", stance="compiled", clock="device"))
    if not accounts:
        return None
    found = (row for row in accounts if row["kind"] == kind and cause in row["category"])
    return sum((row["ms"] or 0.0 for row in found), 0.0)


def launches(count: float) -> str:
    """``1 launch``, ``35 launches``."""
    return f"{count:.0f} launch{'' if round(count) == 1 else 'es'}"


class Waiting(NamedTuple):
    """An operator that compiled code calls, and that waits for the device itself; per step.

    ``ms`` of the host's time, as profiled; ``share`` of the launches of compiled code.
    """

    name: str
    ms: float
    waits: float
    launches: float
    share: float

    @property
    def text(self) -> str:
        """As evidence."""
        waits = f"waits for the device {self.waits:.0f} times"
        took = f"{milliseconds(self.ms)} of the host's time, as profiled"
        return f"{self.name} makes {launches(self.launches)} and {waits} per step: {took}"


def waiting(tables: Tables) -> list[Waiting]:
    """The longest first. No cudagraph can hold one: nothing may wait while it is recorded."""
    ops = compiled_rows(tables, "cpu_ops").filter(pl.col("step").is_not_null())
    calls = compiled_rows(tables, "kernel_launches").drop_nulls("graph_key")
    called = called_in(ops, marks.GRAPH).filter(pl.col("name").str.contains("::"))
    inside = calls.select("step", "tid", "kind", at="start_ns").join(
        called.select("step", "tid", "op_id", "name", "start_ns", "duration_ns"),
        on=["step", "tid"],
    )
    began = pl.col("at") - pl.col("start_ns")
    inside = inside.filter(began.is_between(0, pl.col("duration_ns")))
    steps = max(1, ops["step"].n_unique())
    of_all = max(1, calls.filter(kind="launch").height)
    found = []
    for (name,), rows_of in inside.group_by("name", maintain_order=True):
        counts = Counter(rows_of["kind"])
        if counts["sync"]:
            found.append(
                Waiting(
                    name=str(name),
                    ms=float(rows_of.unique("op_id")["duration_ns"].sum()) / 1e6 / steps,
                    waits=counts["sync"] / steps,
                    launches=counts["launch"] / steps,
                    share=counts["launch"] / of_all,
                )
            )
    return sorted(found, key=lambda each: -each.ms)


def attention_lines(tables: Tables) -> frozenset[str]:
    """``file:line`` of attention that runs as separate operators because of a switch."""
    switches = first_rank(rows(tables, "slow_switches", name=FUSED_ATTENTION))
    return frozenset(line for row in switches for line in row["user_lines"] or ())


def location(text: str) -> Location | None:
    """The line that a table names as ``file:line``."""
    file, _, line = text.rpartition(":")
    return Location(file, int(line)) if line.isdecimal() else None


def locations(texts: Iterable[str | None]) -> list[Location]:
    """The lines that tables name as ``file:line``, each once, in order."""
    return list(dict.fromkeys(filter(None, (location(text or "") for text in texts))))


def at_first(*places: Location | None) -> str:
    """`` at model.py:14``, behind a name: the first place that is known; else nothing."""
    known = next(filter(None, places), None)
    return f" at {short(known)}" if known else ""


def compiled_rows(tables: Tables, name: str) -> pl.DataFrame:
    """The compiled stance's rows of the lowest rank: numbers of operators are a rank's own."""
    found = frame(tables, name, stance="compiled")
    lowest = pl.lit(found["rank"].min(), dtype=pl.Int32)
    return found.filter(pl.col("rank").eq_missing(lowest))


def inputs_named(tables: Tables, graph: Row, read: Graph) -> dict[str, str]:
    """Name of an input in Dynamo's ``graph`` (``read``) → what the user calls it: self.table.

    Guards know it, except where there are none; then it is as Dynamo spells it.
    """
    sources = {
        _NO_LETTERS.sub("_", row["source_name"]).strip("_"): readable(row["source_name"])
        for row in rows(tables, "guards", compile_key=graph["compile_key"])
        if row["source_name"]
    }
    found = {}
    for node in read.inputs:
        name = _NO_LETTERS.sub("_", node.name).strip("_")
        found[node.name] = sources.get(name, name.removeprefix("L_"))
    return found


def input_behind(graph: Graph, named: dict[str, str], name: str) -> str:
    """The input that node ``name`` is, by another name or a first operand; else what has none."""
    while name not in named and (above := graph.nodes[name].inputs):
        name = above[0]
    return name


def pace(tables: Tables, stance: str) -> float:
    """What the library's calls of a timed step take over what they take in a profiled one.

    A GPU that rests before the profile may run twice as fast as under constant load.
    """
    pairs = first_rank(rows(tables, "library_pairs", clock="device"))
    names = {(row["group_id"], name) for row in pairs for name in row[f"{stance}_kernels"]}
    ran = first_rank(rows(tables, "matched_kernels", stance=stance))
    profiled = sum(row["ms"] for row in ran if (row["group_id"], row["name"]) in names)
    return sum(row[f"{stance}_ms"] for row in pairs) / profiled if profiled else 1.0
