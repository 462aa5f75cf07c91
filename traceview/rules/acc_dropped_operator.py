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
    captured: dict[str, Row] = {}
    lowered: dict[str, list[Node]] = defaultdict(list)
    for row in first_rank(rows(tables, "graphs")):
        if row["kind"] == "dynamo_output" and _OPS in (row["text"] or ""):
            captured[row["compile_key"]] = row
        elif row["kind"] in _AOT:
            lowered[row["compile_key"]] += read_nodes(row["text"] or "")
    found: dict[tuple[str, str | None], tuple[Node, Row]] = {}
    for key, row in captured.items():
        kept = {op_name(node.target) for node in lowered[key]}
        places = {node.place for node in lowered[key]}
        for node in read_nodes(row["text"]) if kept else ():
            name = op_name(node.target)
            if not node.target.startswith(_OPS) or name.partition(".")[0] in TORCHS:
                continue
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
                from_row(f"in the captured graph: {node.target}({node.args[:80]}", "graphs", row),
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
