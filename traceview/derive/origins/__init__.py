"""From kernel to source and back: user lines of operators, groups of kernels that belong together.

tree     what stands around an operator; the forward of a backward
lines    operators → lines of the user's, as a lines window saw them or the traced graph names them
work     what did the work in a window, with the kind of work
calls    executions in compiled graphs → calls in the generated code, their nodes and lines
groups   keys, and sets of kernels that share them
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import polars as pl

from traceview.derive.callables import MEASURED_PASS
from traceview.derive.kernel_groups import compile_ids
from traceview.derive.origins.calls import with_calls, with_graphs
from traceview.derive.origins.groups import (
    by_operator,
    by_shape,
    by_shape_alone,
    components,
    group_row,
    keys,
    lost_keys,
    with_leftovers,
)
from traceview.derive.origins.lines import (
    moved_lines,
    op_sources,
    places,
    region_lines,
    traced_lines,
)
from traceview.derive.origins.tree import spelled
from traceview.derive.origins.work import executions, operators
from traceview.derive.windows import HOST_COPY, Window
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks
from traceview.torchtext.output_code import named_operators

__all__ = ["origin_tables"]

Row = dict[str, Any]
_SAME = (
    *("name", "plain", "category", "cpu_op", "kind", "is_cast", "is_backward", "word", "place"),
    *(
        "how",
        "region",
        "graph_key",
        "compile_id",
        "aot_id",
        "order",
        "shape",
        "dtype",
        "layout",
        "top",
        "holder",
    ),
)


def origin_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """op_sources, matched_kernels and match_groups; none where nothing was profiled."""
    runs: dict[tuple[str, int | None], list[Window]] = {}
    for window in found:
        runs.setdefault((window.pass_name, window.rank), []).append(window)
    for (name, rank), windows in list(runs.items()):
        # An eager window of the baseline joins a measured run without any.
        measured = runs.get((MEASURED_PASS, rank), ())
        if name == "baseline" and [window.stance for window in measured] == ["compiled"]:
            runs[MEASURED_PASS, rank] = [*windows, *measured]
            del runs[name, rank]
    parts = [_matched(tables, windows) for windows in runs.values()]
    names = parts[0].keys() if parts else ()
    return {name: pl.concat([part[name] for part in parts]) for name in names}


def _matched(tables: Tables, windows: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """The three tables of the windows of one rank, one a stance, under the compiled one's pass."""
    lead = next((window for window in windows if window.stance == "compiled"), windows[0])
    ops = {window.stance: operators(window) for window in windows}
    sources = {
        w.stance: op_sources(
            w, ops[w.stance], *map(w.own, (tables["line_ops"], tables["compiles"]))
        )
        for w in windows
    }
    # Lines that one stance alone knows would tear apart what is the same in both.
    known = all(frame["line"].count() for frame in sources.values())
    calls = region_lines(tables, lead)
    called = {name for frame in ops.values() for name in frame.filter(kind="cpu_op")["name"]}
    words = {name.rpartition("::")[2].rstrip("_") for name in called if "::" in name}
    rows: list[Row] = []
    for window in windows:
        traced = None
        if window.stance == "eager" and "compiled" in ops:
            traced = traced_lines(tables, lead, ops["eager"], ops["compiled"], calls)
        mine = ops[window.stance]
        placed = places(mine, sources[window.stance] if known else None, traced)
        rows += _rows(tables, window, placed, words, calls)
    head = {"pass": lead.pass_name, "rank": lead.rank}
    graphs = [row for row in rows if row["graph_key"] is not None]
    if graphs and not any(row["is_backward"] for row in graphs):
        # A graph without a backward of its own holds the gradients that torch.func takes in it.
        rows = [row | {"is_backward": row["is_backward"] and not row["region"]} for row in rows]
    lost = lost_keys(rows)
    keyed = by_shape(rows, [keys(row, lost[row["stance"]]) for row in rows])
    split = by_shape_alone(rows, by_operator(rows, keyed))
    roots = components(with_leftovers(rows, split))
    sets: dict[int, list[Row]] = {}
    for root, row in zip(roots, rows, strict=True):
        sets.setdefault(root, []).append(row)
    ordered = sorted(sets.values(), key=lambda mine: -sum(row["ns"] for row in mine))
    shown = from_rows("matched_kernels", ()).columns
    members = [
        head | {"group_id": number} | {name: row[name] for name in shown if name in row}
        for number, mine in enumerate(ordered)
        for row in mine
    ]
    groups = [head | {"group_id": n} | group_row(mine) for n, mine in enumerate(ordered)]
    columns = from_rows("op_sources", ()).schema
    headed = [
        sources[w.stance]
        .with_columns(pl.lit(value).alias(name) for name, value in w.head.items())
        .select(pl.col(name).cast(dtype) for name, dtype in columns.items())
        for w in windows
    ]
    return {
        "op_sources": pl.concat(headed),
        "matched_kernels": from_rows("matched_kernels", members),
        "match_groups": from_rows("match_groups", groups),
    }


def _rows(
    tables: Tables,
    window: Window,
    ops: pl.DataFrame,
    words: Container[str],
    calls: Mapping[str, str],
) -> list[Row]:
    """Executions of a window, added up where they are alike in all that the tables show.

    ``words`` are the operators that names of kernels may hold; ``calls`` the lines of the regions'
    calls: those of a graph's kernels where none of its nodes stands in a line of the user's, and
    the user's line that led to its code is not known.
    """
    names = ops["name"]
    kernel_calls = window.own(tables["kernel_calls"])
    work = with_graphs(executions(window, ops), kernel_calls)
    backward = names[work["backward_row"]].str.strip_prefix(marks.AUTOGRAD)
    spelt = spelled(names)
    top = spelt[work["top_row"]]
    work = work.with_columns(
        word=pl.coalesce(backward, top, "plain"),
        is_backward=backward.is_not_null(),
        top=top,
        holder=spelt[work["parent_row"]],
    )
    outside = work.filter(pl.col("graph_key").is_null())
    place = ops.select("row", "place", "how")
    outside = outside.join(place, on="row", how="left", maintain_order="left")
    inside = work.filter(pl.col("graph_key").is_not_null())
    inside = with_calls(inside, ops, kernel_calls).with_columns(
        is_backward=pl.coalesce(pl.col("aot_id").str.ends_with("backward"), "is_backward"),
        lined=(pl.col("user_lines").list.len().max().over("graph_key") > 0).fill_null(False),
    )
    # Copies to a device and from it.
    inside = inside.join(
        moved_lines(tables, window), on="graph_key", how="left", maintain_order="left"
    )
    is_move = pl.col("moved").is_not_null() & pl.col("how").is_null()
    is_move &= pl.col("name").str.contains(HOST_COPY)
    inside = inside.with_columns(
        how=pl.when(is_move).then(pl.lit("comment")).otherwise("how"),
        ops=pl.when(is_move).then(pl.lit(["aten.copy_"])).otherwise("ops"),
        user_lines=pl.when(is_move).then(pl.concat_list("moved")).otherwise("user_lines"),
    )
    compiles = window.own(compile_ids(tables)).drop("pass", "rank")
    both = pl.concat([outside, inside], how="diagonal_relaxed")
    both = both.join(compiles, on="graph_key", how="left", maintain_order="left").with_columns(
        compile_id=pl.coalesce("compile_id", "known_compile_id")
    )
    alike = both.group_by(_SAME, maintain_order=True).agg(
        pl.col("ns").sum(),
        *(pl.col(name).first() for name in ("source_nodes", "ops", "user_lines", "lined")),
        times=pl.len(),
    )
    # A library's code that is compiled by itself has the user's line that led to it first.
    librarys = pl.col("user_file") != pl.col("co_filename")
    led = dict(
        window.own(tables["compiles"])
        .filter(librarys, pl.col("user_line").is_not_null())
        .select("compile_id", pl.format("{}:{}", "user_file", "user_line"))
        .iter_rows()
    )
    return [
        _row(window, row, words, led.get(row["compile_id"]) or calls.get(row["region"] or ""))
        for row in alike.iter_rows(named=True)
    ]


def _row(window: Window, row: Row, words: Container[str], call: str | None) -> Row:
    """An added-up execution with its time per step, its operators and its lines.

    ``call``: the line that called the graph, for what has none of the user's in it.
    """
    ops, how = row["ops"] or [], row["how"]
    lines = row["user_lines"] or []
    if row["graph_key"] is None:
        ops = [(row["cpu_op"] or row["name"]).replace("::", ".")]
        lines = [row["place"]] if row["place"] else []
        how = how or "operator"
    elif how:
        ops = ops or [f"aten.{word}" for word in named_operators(row["plain"], words)]
        lines = lines or ([call] if ops and call and not row["lined"] else [])
        how = how if lines else "operator" if ops else None  # a pass made its nodes, without lines
    file, _, line = lines[0].rpartition(":") if lines else (None, None, None)
    return row | {
        "stance": window.stance,
        "ops": ops,
        "how": how,
        "count": window.per_step(row["times"]),
        "ms": window.ms_per_step(row["ns"]),
        "clock": window.clock,
        "lines": lines,
        "file": file,
        "line": int(line) if line else None,
    }
