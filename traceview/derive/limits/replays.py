"""Cudagraph replays: which call of the generated code each kernel comes from, by order and name.

The kernels of a replay share one ``correlation`` and have no operator of their own. Generated ones
are called as their call is; where the names of all of them agree with the code's, the library
kernels between two of them belong to the library calls that stand between these two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import polars as pl

from traceview.torchtext.output_code import Function, Site

#: pass, graph key, compile id → functions of the generated module.
FunctionsOf = Callable[[str, str | None, str | None], list[Function]]


def replayed_sites(
    kernels: pl.DataFrame, functions_of: FunctionsOf
) -> tuple[pl.Series, list[Site]]:
    """Column ``site`` for ``kernels`` (rows as they are), numbers into the list of sites.

    ``kernels`` needs pass, graph_key, compile_id, correlation, name, kind, start_ns, in_cudagraph.
    """
    rows = kernels.with_row_index("row").filter(
        pl.col("in_cudagraph") & (pl.col("kind") == "kernel") & pl.col("correlation").is_not_null()
    )
    replays = rows.sort("start_ns").group_by("pass", "correlation", maintain_order=True).agg(
        pl.col("graph_key").first(), pl.col("compile_id").first(), pl.col("name"), pl.col("row")
    )  # fmt: skip
    sites: list[Site] = []
    known: dict[tuple[object, ...], list[int | None]] = {}
    at: list[tuple[int, int]] = []
    for pass_name, _, graph_key, compile_id, names, numbers in replays.iter_rows():
        key = (pass_name, graph_key, compile_id, *names)
        if key not in known:
            functions = functions_of(pass_name, graph_key, compile_id)
            known[key] = _numbered(aligned(names, functions), sites)
        found = zip(numbers, known[key], strict=True)
        at += [(row, site) for row, site in found if site is not None]
    column = pl.DataFrame(
        {"row": [r for r, _ in at], "site": [s for _, s in at]},
        schema={"row": pl.UInt32, "site": pl.Int32},
    )
    joined = kernels.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("row")).join(
        column, on="row", how="left", maintain_order="left"
    )
    return joined["site"], sites


def _numbered(found: Sequence[Site | None], sites: list[Site]) -> list[int | None]:
    """``found`` as numbers into ``sites``, which grows; kernels of one call share a number."""
    numbers: dict[int, int] = {}
    for site in found:
        if site is not None and id(site) not in numbers:
            numbers[id(site)] = len(sites)
            sites.append(site)
    return [None if site is None else numbers[id(site)] for site in found]


def aligned(names: Sequence[str], functions: Sequence[Function]) -> list[Site | None]:
    """The call of every kernel of one replay; None where order and names do not tell."""
    for function in functions:
        defined = [site.kernel for site in function.sites if not site.library]
        anchors = [n for n, name in enumerate(names) if name in set(defined)]
        if defined and [names[n] for n in anchors] == defined:
            return _between(names, anchors, function.sites)
    return [None] * len(names)


def _between(names: Sequence[str], anchors: list[int], sites: Sequence[Site]) -> list[Site | None]:
    found: list[Site | None] = [None] * len(names)
    places = [n for n, site in enumerate(sites) if not site.library]
    for at, place in zip(anchors, places, strict=True):
        found[at] = sites[place]
    bounds = zip(
        pairwise([-1, *anchors, len(names)]), pairwise([-1, *places, len(sites)]), strict=True
    )
    for (low, high), (first, last) in bounds:
        calls, kernels = sites[first + 1 : last], range(low + 1, high)
        if len(calls) == 1:
            for n in kernels:
                found[n] = calls[0]
        elif len(calls) == len(kernels):
            for n, call in zip(kernels, calls, strict=True):
                found[n] = call
    return found
