"""Executions inside compiled graphs → the calls in the generated code that they come from."""

from __future__ import annotations

import polars as pl

from traceview.derive.origins.tree import numbered, spelled
from traceview.derive.windows import GENERATED
from traceview.parse.kineto.categories import operator_category
from traceview.torchtext.fx import operator_word
from traceview.torchtext.output_code import library_operator

#: What a library call of generated code is called as an operator, where the names differ.
_OPERATORS = {"bias_addmm": "addmm", "_mm_plus_mm": "addmm"}
#: Torch's mark of a call names no key where the graph is in no cache.
_NO_KEY = "None"
_CODE = ("code", "compile_id")
_CALL = ("order", "source_nodes", "ops", "user_lines", "line_origin", "aot_id")


def with_calls(inside: pl.DataFrame, ops: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Executions in compiled graphs with the columns of their call and ``how``; null: not found.

    The n-th launch of a generated kernel within a graph's call is the n-th call of it in the code;
    so is the n-th operator that a library call leads to. Inside a cudagraph there are no operators:
    a library's kernel belongs to the library calls between the generated kernels around it.
    """
    sites = _sites(calls)
    columns = inside.columns
    uncached = pl.col("graph_key") == _NO_KEY
    inside = inside.with_row_index("at").with_columns(
        code=pl.when(uncached).then(_of_way(pl.col("is_backward"))).otherwise("graph_key")
    )
    # Executions under an operator that a graph's call ran have its word, n-th and total.
    direct = ops.filter(
        (pl.col("parent_row") == pl.col("graph_row")) & (pl.col("row") == pl.col("top_row"))
    )
    direct = direct.sort("start_ns")
    direct = direct.select("graph_row", top_row="row", site=spelled(direct["name"]))
    direct = numbered(direct, "graph_row", "site")
    inside = inside.join(direct.drop("graph_row"), on="top_row", how="left", maintain_order="left")
    launch = ("code", "mark", "plain")
    inside = inside.with_columns(
        site=pl.coalesce("site", "plain"),
        n=pl.coalesce("n", pl.int_range(pl.len()).over(launch)),
        times=pl.coalesce("times", pl.len().over(launch)),
    )
    found = _joined(inside, sites, ("site", "n", "times"))
    found = _by_name(_by_order(found, sites), sites)
    return found.sort("at").select(*columns, *_CALL, "how")


def with_graphs(work: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """``work`` with the graph of generated kernels that stand in none, where only one calls them.

    Before 2.9 torch marks no graph's call in the profile if it has no backward.
    """
    graphs = (
        calls.drop_nulls(["graph_key", "compile_id"])
        .group_by("compile_id", plain="kernel_name")
        .agg(known=pl.col("graph_key").first(), graphs=pl.col("graph_key").n_unique())
    )
    graphs = graphs.filter(pl.col("graphs") == 1).drop("graphs")
    found = work.join(graphs, on=["compile_id", "plain"], how="left", maintain_order="left")
    key = pl.coalesce("graph_key", pl.when(GENERATED).then("known"))
    return found.with_columns(graph_key=key).drop("known")


def _of_way(backward: pl.Expr) -> pl.Expr:
    """What stands for the key of a graph that no cache holds."""
    return pl.format("{} {}", pl.lit(_NO_KEY), backward.cast(pl.String))


def _sites(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with their ``code``, counted by the ``site`` that their executions carry.

    That is a kernel's name, or an operator; a user's own Triton kernel is called by a numbered name
    and launched by its own. A row without ``compile_id`` stands for any compile, where the code is
    of only one.
    """
    names = calls["kernel_name"].drop_nulls().unique()
    called = {name: operator_word(library_operator(name)) for name in names}
    words = {name: _OPERATORS.get(word, word) for name, word in called.items()}
    kinds = {name: operator_category(f"aten::{word}") for name, word in words.items()}
    backward = pl.col("aot_id").str.ends_with("backward").fill_null(False)
    known = calls.with_columns(code=pl.coalesce("graph_key", _of_way(backward)))
    known = known.drop_nulls("compile_id").unique(
        [*_CODE, "order"], keep="last", maintain_order=True
    )
    library = pl.col("category").is_in(["extern", "fallback"])
    written = pl.col("category") == "user_triton"
    name = pl.col("kernel_name")
    # mylib of torch.ops.mylib.shift.default; extern kernels are ATen's.
    namespace = pl.coalesce(
        name.str.extract(r"^torch\.ops\.(\w+)\."),
        pl.when(written).then(pl.lit("triton")),
        pl.lit("aten"),
    )
    known = (
        known.with_columns(
            site=pl.when(library)
            .then(name.replace_strict(words, default=None, return_dtype=pl.String))
            .when(written)
            .then(name.str.replace(r"_\d+$", ""))
            .otherwise(name),
            library=library,
            kind=name.replace_strict(kinds, default=None, return_dtype=pl.String),
        )
        .with_columns(
            ops=pl.when(library | written)
            .then(pl.concat_list(pl.format("{}.{}", namespace, "site")))
            .otherwise("ops"),
            line_origin=pl.coalesce(
                "line_origin",
                pl.when(pl.col("post_nodes").is_not_null())
                .then(pl.lit("provenance"))
                .otherwise(pl.lit("comment")),
            ),
        )
        .sort("order")
    )
    known = numbered(known, *_CODE, "site")
    single = known.filter(pl.col("compile_id").n_unique().over("code") == 1)
    anyone = single.with_columns(compile_id=pl.lit(None, dtype=pl.String))
    return pl.concat([known, anyone])


def _joined(inside: pl.DataFrame, sites: pl.DataFrame, on: tuple[str, ...]) -> pl.DataFrame:
    """``inside`` with the columns of the call that agrees in ``on``, of its compile or of any."""
    right = sites.select(*_CODE, *on, *_CALL)
    own = inside.join(right, on=[*_CODE, *on], how="left", maintain_order="left")
    anyone = right.filter(pl.col("compile_id").is_null()).drop("compile_id")
    both = own.join(anyone, on=["code", *on], how="left", suffix="_any", maintain_order="left")
    return both.with_columns(
        *(pl.coalesce(name, f"{name}_any").alias(name) for name in _CALL),
        how=pl.coalesce("line_origin", "line_origin_any"),
    ).drop(f"{name}_any" for name in _CALL)


def _by_order(found: pl.DataFrame, sites: pl.DataFrame) -> pl.DataFrame:
    """Library kernels of a cudagraph's replay, by their place between generated kernels.

    A gap with one library call is that call's; one with as many calls as kernels is shared in
    order; else the same is tried for each kind of work in it. The rest stays unassigned.
    """
    replay = pl.col("in_cudagraph") & ~GENERATED & pl.col("order").is_null()
    found = found.with_columns(loose=replay)
    if not found["loose"].any():
        return found
    found = _in_gaps(found, replay, ("code", "mark", "loose"))
    gaps = _in_gaps(sites.sort("order"), pl.col("library"), (*_CODE, "library"))
    gaps = gaps.filter("library")
    left, settled = found.filter("loose"), [found.filter(~pl.col("loose"))]
    for kind in ((), ("kind",)):
        n, total = ("of_kind", "kind_total") if kind else ("of_gap", "gap_total")
        for calls, on in ((gaps, (n, total)), (gaps.filter(pl.col(total) == 1), ())):
            left = left.drop(*_CALL, "how")
            joined = _joined(left, calls, ("after", "before", *kind, *on))
            found_call = pl.col("order").is_not_null()
            settled.append(joined.filter(found_call).with_columns(how=pl.lit("order")))
            left = joined.filter(~found_call)
    return pl.concat([*settled, left], how="diagonal_relaxed")


def _in_gaps(rows: pl.DataFrame, between: pl.Expr, run: tuple[str, ...]) -> pl.DataFrame:
    """``rows`` with the generated calls around each and its place in the gap, of its kind too."""
    fixed = pl.when(~between).then("order")
    whole = run[:-1]
    rows = rows.with_columns(
        after=fixed.forward_fill().over(whole).fill_null(-1),
        before=fixed.backward_fill().over(whole).fill_null(-1),
    )
    gap, kind = (*run, "after", "before"), (*run, "after", "before", "kind")
    return rows.with_columns(
        of_gap=pl.int_range(pl.len()).over(gap),
        gap_total=pl.len().over(gap),
        of_kind=pl.int_range(pl.len()).over(kind),
        kind_total=pl.len().over(kind),
    )


def _by_name(found: pl.DataFrame, sites: pl.DataFrame) -> pl.DataFrame:
    """Executions that are not as many as the calls: what all calls of the name have together."""
    named = ("code", "site")
    if not found["order"].null_count():
        return found
    merged = (
        sites.drop_nulls("compile_id")
        .group_by(named)
        .agg(
            pl.col("order").first(),
            *(
                pl.col(c).list.explode().drop_nulls().unique(maintain_order=True)
                for c in ("source_nodes", "ops", "user_lines")
            ),
            pl.col("line_origin").first(),
            pl.col("aot_id").first(),
        )
    )
    missed = found.filter(pl.col("order").is_null()).drop(*_CALL, "how")
    missed = missed.join(merged, on=named, how="left").with_columns(
        how=pl.when(pl.col("order").is_not_null()).then(pl.lit("name"))
    )
    return pl.concat([found.filter(pl.col("order").is_not_null()), missed], how="diagonal_relaxed")
