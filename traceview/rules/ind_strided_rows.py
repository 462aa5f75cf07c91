"""
## What it finds
Rows that compiled code looks up in a table in which the elements of a row lie far apart.

## Why it costs
Memory is read in lines of 32 to 128 bytes. Where a row lies together, a few lines have all of it.
In a table that is stored by columns, each element of a row is in a line of its own, of which
nothing else is used. Such tables come from NumPy and pandas (`df.values`, `np.array(columns).T`):
`torch.from_numpy` keeps their strides, and so does a transpose. Inductor reads its inputs as they
lie, and does not copy them into another layout.

## Evidence
The graph takes rows (`table[index]`) of an input whose first dimension has the smallest stride. At
the script's end rows at random places of such a table are looked up, as it is and contiguous. The
saving is that part of what the look-up takes in eager, and no more than the generated kernels take.

## What to do
Store the table by rows, once, where it is made: `table.contiguous()`, or `np.ascontiguousarray`
before `torch.from_numpy`. A table that is made in every step would have to be copied there.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that rows which lie together must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html
- https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
- https://numpy.org/doc/stable/dev/internals.html
- torch/_inductor/lowering.py, `index`
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from traceview.rules._gain import Timed, locations
from traceview.rules.kit import (
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    short,
    step_ms,
)
from traceview.torchtext.fx import read_graph, tensor_sizes, tensor_strides

CODE = "TV438"
NEEDS = frozenset({"shape_gains", "graphs", "matched_kernels", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
_LOOKED_UP = re.compile(r"^\((\w+), \[\w+\]\)")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all look-ups of such rows, at the slowest one's line."""
    gains = first_rank(rows(tables, "shape_gains", kind="indexing", way="contiguous"))
    step = step_ms(tables, "compiled")
    found = _lookups(tables) if gains and step else {}
    if not step or not found:
        return
    matched = first_rank(rows(tables, "matched_kernels"))
    spent: dict[str, float] = defaultdict(float)
    groups = set()
    for row in matched:
        line = f"{row['file']}:{row['line']}"
        if row["stance"] == "eager" and row["category"] == "indexing" and line in found:
            spent[line] += row["ms"] or 0.0
            groups.add(row["group_id"])
    generated = (
        row["ms"] or 0.0
        for row in matched
        if row["stance"] == "compiled" and row["group_id"] in groups
        if row["category"].startswith("generated_")
    )
    timed = Timed.of(tables, gains, min(sum(spent.values()), sum(generated)))
    saved = timed.saved
    if saved < least_share * step:
        return
    slowest = sorted(spent, key=lambda line: -spent[line])
    places = locations(slowest)
    table = found[slowest[0]]
    measured = timed.said("as it is", "contiguous")
    yield Finding(
        code=CODE,
        rule="ind-strided-rows",
        severity=severity(tables, saved),
        title=(
            f"The rows that {short(places[0])} looks up are stored by columns: stored by rows, "
            f"they would save {milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            f"The table is {table}: the elements of a row lie far apart, and each is read with a "
            "line of memory of which nothing else is used. Compiled code reads it as it lies."
        ),
        cost=timed.cost("look-ups", measured),
        confidence="measured",
        location=places[0],
        evidence=(Evidence(f"look-ups at random places: {measured}", "shape_gains"),),
        what_to_do=(
            "Store the table by rows, once, where it is made. torch.from_numpy keeps the strides "
            "that NumPy or pandas gave it."
        ),
        snippet=Snippet("python", "table = table.contiguous()  # once, before the first step"),
        also_at=tuple(places[1:4]),
        weighs=True,
    )


def _lookups(tables: Tables) -> dict[str, str]:
    """Line that looks up rows of an input stored by columns, in compiled code → that input."""
    found: dict[str, str] = {}
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if ".index.Tensor(" not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        for node in graph.operations:
            called = _LOOKED_UP.match(node.args) if node.op == "aten.index" else None
            table = graph.nodes.get(called[1]) if called else None
            if table is None or table.args or not node.user_line:
                continue
            sizes, strides = tensor_sizes(table.meta), tensor_strides(table.meta)
            if sizes and strides and len(sizes) > 1 and strides[0] < min(strides[1:]):
                by = ", ".join(map(str, strides))
                words = "×".join(f"{size:,}" for size in sizes)
                found.setdefault(node.user_line, f"{words} with the strides ({by})")
    return found
