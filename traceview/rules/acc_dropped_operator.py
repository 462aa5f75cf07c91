"""
## What it finds
A custom operator that Dynamo traced and that is missing in the graph that was compiled: compiled
code does not run it, eager does.

## Why it costs
AOTAutograd removes an operator whose results are not used, unless its schema says that it writes to
an argument. If it does write to one, and `mutates_args` leaves that out, compiled code skips the
write without a message: a state is no longer updated, and results are wrong.

## Evidence
The graph that Dynamo captured calls the operator; no AOTAutograd graph of the same compile does, or
has any operation from that line, as it would if the operator had been taken apart. Whether it
writes to an argument no log says.

## What to do
Declare every argument that it writes to: `mutates_args=("buffer",)`, or `Tensor(a!)` in a schema.
`torch.library.opcheck` finds such mistakes. If it writes to none, what is removed is not needed.
Caches of compiled graphs do not know the schema: clear them after the change.

## References
- https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op
- https://docs.pytorch.org/docs/stable/library.html#torch.library.opcheck
- torch/_functorch/_aot_autograd/graph_capture.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from traceview.parse.kineto.categories import TORCHS
from traceview.rules._accuracy import RESULT
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    rows,
    short,
)
from traceview.torchtext.fx import Node, op_name, read_nodes

CODE = "TV704"
NEEDS = frozenset({"graphs"})
SEVERITIES = ("warning",)
EXPLAINS = frozenset({"less_work"})

_AOT = ("aot_inference", "aot_joint", "aot_forward")
_OPS = "torch.ops."


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each operator and line."""
    captured: dict[str, tuple[Row, list[Node]]] = {}
    for row in first_rank(rows(tables, "graphs", kind="dynamo_output")):
        text = row["text"] or ""
        nodes = read_nodes(text) if _OPS in text else []
        # Operators that torch does not come with.
        own = [
            node
            for node in nodes
            if node.target.startswith(_OPS) and op_name(node.target).partition(".")[0] not in TORCHS
        ]
        if own:
            captured[row["compile_key"]] = row, own
    lowered: dict[str, list[Node]] = defaultdict(list)
    for row in first_rank(rows(tables, "graphs")) if captured else ():
        if row["kind"] in _AOT and row["compile_key"] in captured:
            lowered[row["compile_key"]] += read_nodes(row["text"] or "")
    found: dict[tuple[str, str | None], tuple[Node, Row]] = {}
    for key, nodes in lowered.items():
        kept, places = {op_name(node.target) for node in nodes}, {node.place for node in nodes}
        row, own = captured[key]
        for node in own if kept else ():
            name = op_name(node.target)
            if name not in kept and node.place not in places:
                found.setdefault((name, node.user_line), (node, row))
    for (name, _), (node, row) in found.items():
        operator = name.replace(".", "::")
        place = node.place and Location(node.place.file, node.place.line, node.place.function)
        yield Finding(
            code=CODE,
            rule="acc-dropped-operator",
            severity="warning",
            title=f"Compiled code does not run {operator}{f' ({short(place)})' if place else ''}",
            explanation=(
                "Dynamo traced the operator, and AOTAutograd removed it: nothing uses what it "
                "returns, and its schema says that it writes to no argument. If it does write to "
                "one, that write is missing, and compiled results are wrong."
            ),
            cost=RESULT,
            confidence="derived",
            location=place,
            evidence=(
                from_row(f"in the captured graph: {node.target}{node.args[:80]}", "graphs", row),
            ),
            what_to_do=(
                "Declare every argument that the operator writes to, and clear the caches. If it "
                "writes to none, remove the call."
            ),
            snippet=Snippet(
                "python", f'@torch.library.custom_op("{operator}", mutates_args=("…",))'
            ),
            about=about(*of_keys(tables, {row["compile_key"]})),
        )
