"""
## What it finds
One large graph that consists of many identical blocks: the layers of a transformer, the steps of an
unrolled recurrence.

## Why it costs
Compiling takes time for every operation of a graph, even in a block that is identical to the one
before. Compiled separately, one block serves for all of them.

## Evidence
In the graph that Dynamo captured, the same operations with the same shapes, from the same lines,
occur at least eight times: in a row, or as calls of one function with other operations between. The
cost is the seconds of that compile, by the part of its operations that lie in these blocks, less
one block. The location is the torch.compile call, which is what to change; a line of the block is
listed with it. Where entering each block would make the step a quarter longer, as many blocks are
taken together as keep it below that.

A warning where that is at least a quarter of a job whose length is known, or a minute. Otherwise
information.

## What to do
Compile each block, or a few small ones together, instead of the whole model
(`for block in model.blocks: block.compile()`). One
compile serves all of them, or two in training, where the first block's input needs no gradient.
Nothing fuses across block boundaries any more; to keep one graph, mark the block as
`torch.compiler.nested_compile_region`.

## Settings
- `fewest_blocks`: fewer identical blocks are not reported
- `least_seconds`: smaller costs are not reported

## References
- https://docs.pytorch.org/tutorials/recipes/regional_compilation.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.nested_compile_region.html
- torch/compiler/__init__.py, `nested_compile_region`
- https://github.com/huggingface/diffusers/pull/11705
- https://github.com/vllm-project/vllm/issues/20451
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import eq, itemgetter
from typing import NamedTuple

import msgspec
from msgspec import structs

from traceview.derive.speedup import REAL_JOB_S
from traceview.rules import _recompiles, _starts
from traceview.rules.kit import (
    Cost,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about,
    compile_call,
    compile_seconds,
    first_rank,
    from_row,
    if_users,
    percent,
    plural,
    region_of,
    rows,
    seconds,
    short,
    step_ms,
    torch_version,
)
from traceview.tables import grouped
from traceview.torchtext.fx import read_nodes

CODE = "TV602"
NEEDS = frozenset({"compiles", "graphs"})
SEVERITIES = ("warning", "info")

#: Of fewer blocks, compiling one saves too little to lose what fuses across them.
FEWEST_BLOCKS = 8
#: A few seconds are no reason to restructure a model.
LEAST_SECONDS = 3.0
#: Older ones may not have torch.compiler.nested_compile_region, or not for all that it is asked.
_NESTED_SINCE = (2, 9)
_NESTED = (
    " To keep one graph, call the block through torch.compiler.nested_compile_region instead: "
    "the block is then compiled once and reused."
)

#: A call of compiled code takes some ten microseconds on the host, whatever it does: of all blocks
#: together no more than this part of the compiled step.
_ENTRY_MS, _MOST_ENTERING = 0.01, 0.25
#: Parameters of modules in a list are named so in the graph's first line.
_MODULES, _HEAD = re.compile(r"_modules_\d+_"), 100_000


#: A shorter pattern is no block: it is a chain of one kind of operation.
_FEWEST_OPERATIONS = 4
#: Distances at which repeats are looked for, the commonest first.
_DISTANCES = 8


def check(
    tables: Tables, *, fewest_blocks: int = FEWEST_BLOCKS, least_seconds: float = LEAST_SECONDS
) -> Iterator[Finding]:
    """One finding a function: the compile that cost most."""
    slowest: dict[_recompiles.Frame, Finding] = {}
    step = step_ms(tables, "compiled")
    graphs = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    of_key = grouped(rows(tables, "compiles"), "compile_key")
    for graph in {row["compile_key"]: row for row in graphs}.values():
        compiles = of_key.get(graph["compile_key"], [])
        whole = compile_seconds(first_rank(compiles)) or 0.0
        if whole < least_seconds:
            continue
        whole -= _starts.once_seconds(tables, {graph["compile_key"]})
        if whole < least_seconds:
            continue
        found = repeated(operations(graph["text"] or ""), fewest_blocks)
        if found is None:
            continue
        entering = found.count * _ENTRY_MS / (_MOST_ENTERING * step) if step else 0.0
        found = structs.replace(found, together=max(1, math.ceil(entering)))
        if whole * found.share < least_seconds or 2 * found.together > found.count:
            continue
        frame = _recompiles.frame_of(compiles[0])
        known = slowest.get(frame)
        if known is None or whole * found.share > (known.cost.seconds or 0.0):
            slowest[frame] = _finding(tables, compiles, graph, found, whole)
    yield from slowest.values()


def _finding(
    tables: Tables, compiles: list[Row], graph: Row, found: Blocks, whole: float
) -> Finding:
    cost = whole * found.share
    each = len(found.operations)
    call = compile_call(region_of(tables, graph["compile_key"]))
    version = torch_version(tables)
    # What to compile: each of the modules in a row, else the function that a loop calls.
    function = found.place.function if found.place else None
    if function is None or _MODULES.search(graph["text"] or "", 0, _HEAD):
        what = "the block"
        code = "for block in model.blocks:  # the module that holds them\n    block.compile()"
        code += "  # instead of torch.compile(model)"
    elif function == "forward":
        what = f"the module whose forward() is at {short(found.place)}"
        code = "block.compile()  # the module that the loop calls, instead of torch.compile(model)"
    else:
        what = f"{function}()"
        code = f"{function} = torch.compile({function})  # not what calls it in a loop"
    if found.together > 1:
        what = f"a function that does {found.together} of them"
        code = (
            "@torch.compile  # not what calls it in a loop\n"
            f"def some(…):\n    for _ in range({found.together}): …"
        )
    repeats = f"the same {each} {'in a row ' if found.in_a_row else ''}{found.count} times"
    text = (
        f"compile {graph['compile_id']}: {plural(found.graph_operations, 'operation')}, {repeats}"
    )
    return Finding(
        code=CODE,
        rule="ct-repeated-blocks",
        severity="warning" if cost >= REAL_JOB_S else _starts.severity(tables, cost),
        title=(
            f"{found.count} identical blocks of {plural(each, 'operation')} are compiled separately"
        ),
        explanation=(
            f"They are {percent(each * found.count / found.graph_operations)} of a graph that took "
            f"{seconds(whole)} to compile. What is compiled once serves for all of them."
        ),
        cost=Cost(
            seconds=cost,
            about=f"compiling all blocks but {found.together}, without a warm cache",
        ),
        confidence="derived",
        location=call or found.place,
        evidence=(from_row(text, "graphs", graph),),
        what_to_do=(
            f"Compile {what} instead of all of them. Nothing fuses across its boundaries then: "
            f"compare the step's time."
            + (_NESTED if version is not None and version >= _NESTED_SINCE else "")
        ),
        snippet=Snippet("python", code),
        also_at=(found.place,) if call and found.place else (),
        about=about(*compiles[:1]),
    )


class Operation(NamedTuple):
    """One line of a graph that Dynamo captured; ``meta`` is what it makes: dtype and shape."""

    op: str
    meta: str | None
    place: Location | None


class Blocks(msgspec.Struct, frozen=True):
    """``count`` equal blocks: one's operations, and how many the graph has.

    ``in_a_row``: nothing stands between them. ``together``: how many to compile as one.
    """

    operations: tuple[Operation, ...]
    count: int
    graph_operations: int
    in_a_row: bool = True
    together: int = 1

    @property
    def share(self) -> float:
        """Of the graph's operations, those that lie in blocks that need no compile of their own."""
        return len(self.operations) * (self.count - self.together) / self.graph_operations

    @property
    def place(self) -> Location | None:
        return next((one.place for one in self.operations if one.place), None)


def operations(text: str) -> list[Operation]:
    """The operations of Dynamo's graph in order, without the names of what they read and make.

    ``torch.tanh``, ``.view`` of a method, ``+``; nothing is another name of the same thing.
    """
    found = []
    for node in read_nodes(text):
        if node.target.startswith("torch."):
            op = node.target
        elif node.args.startswith("("):
            op = f".{node.target.rpartition('.')[2]}"
        else:
            op = re.sub(r"[\w.\s]+", "", node.args)
        if op:
            place = if_users(*node.place) if node.place else None
            found.append(Operation(op, node.meta or None, place))
    return found


def repeated(graph: Sequence[Operation], fewest: int = 2) -> Blocks | None:
    """The ``fewest`` equal blocks or more that hold the most operations; None where none are."""
    if any("invoke_subgraph" in one.op for one in graph):
        return None  # blocks that are nested regions already
    blocks: list[Blocks] = []
    # What repeats in a row: the commonest distances between an operation and the next one like it,
    # short ones first.
    last: dict[Operation, int] = {}
    distances: Counter[int] = Counter()
    for at, one in enumerate(graph):
        if one in last:
            distances[at - last[one]] += 1
        last[one] = at
    for distance in sorted(distance for distance, _ in distances.most_common(_DISTANCES)):
        if distance < _FEWEST_OPERATIONS:
            continue
        # The longest stretch that is the same ``distance`` operations later.
        same = map(eq, graph, graph[distance:])
        runs = [list(run) for equal, run in groupby(enumerate(same), itemgetter(1)) if equal]
        longest = max(runs, key=len, default=[])
        if len(longest) >= distance:
            start = longest[0][0]
            block = tuple(graph[start : start + distance])
            blocks.append(Blocks(block, len(longest) // distance + 1, len(graph)))
    # Stretches of one function's own lines, wherever they stand.
    stretches = (
        tuple(stretch)
        for _, stretch in groupby(
            graph, key=lambda one: (one.place.file, one.place.function) if one.place else None
        )
    )
    for block, count in Counter(stretches).most_common():
        if count > 1 and len(block) >= _FEWEST_OPERATIONS and block[0].place:
            blocks.append(Blocks(block, count, len(graph), in_a_row=False))
    found = (one for one in blocks if one.count >= fewest)
    return max(found, key=lambda one: one.count * len(one.operations), default=None)
