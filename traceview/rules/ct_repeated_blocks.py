"""
## What it finds
One large graph that is made of many equal blocks: the layers of a transformer, the steps of an
unrolled recurrence.

## Why it costs
Compiling takes time for every operation of a graph, also for those of a block that is like the one
before. Compiled by itself, one block serves for all of them.

## Evidence
In the graph that Dynamo captured, the same operations with the same shapes, from the same lines,
stand at least eight times: in a row, or as calls of one function with other operations between. The
cost is the seconds of that compile, by the part of its operations that lie in these blocks, less
one block. It is about the torch.compile call, which is what to change; a line of the block stands
beside it. Blocks so small that entering each by itself would make the step a quarter longer are not
named: every start's seconds would be dearly saved.

A warning where that is a quarter or more of a job whose length is known; else information.

## What to do
Compile each block instead of the whole (`for block in model.blocks: block.compile()`). One compile
serves all of them, or two in training, where the first block's input needs no gradient. Nothing
fuses across the blocks' edges any more; to keep one graph, mark the block as
`torch.compiler.nested_compile_region`.

## Settings
- `fewest_blocks`: equal blocks, from which on they are mentioned
- `least_seconds`: that they cost; less is not mentioned

## References
- https://docs.pytorch.org/tutorials/recipes/regional_compilation.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.nested_compile_region.html
- torch/compiler/__init__.py, `nested_compile_region`
- https://github.com/huggingface/diffusers/pull/11705
- https://github.com/vllm-project/vllm/issues/20451
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _costs, _places, _recompiles, _starts, _versions
from traceview.rules._blocks import Blocks, operations, repeated
from traceview.rules.kit import (
    Cost,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about,
    compile_call,
    first_rank,
    from_row,
    percent,
    plural,
    rows,
    seconds,
    short,
    step_ms,
)

CODE = "TV602"
NEEDS = frozenset({"compiles", "graphs"})

#: Of fewer blocks, compiling one saves too little to lose what fuses across them.
FEWEST_BLOCKS = 8
#: Below a few seconds nobody need restructure a model.
LEAST_SECONDS = 3.0
#: Older ones may not have torch.compiler.nested_compile_region, or not for all that it is asked.
_NESTED_SINCE = (2, 9)

#: A call of compiled code takes some ten microseconds on the host, whatever it does: of all blocks
#: together no more than this part of the compiled step.
_ENTRY_MS, _MOST_ENTERING = 0.01, 0.25
#: Parameters of modules in a list are named so in the graph's first line.
_MODULES, _HEAD = re.compile(r"_modules_\d+_"), 100_000


def check(
    tables: Tables, *, fewest_blocks: int = FEWEST_BLOCKS, least_seconds: float = LEAST_SECONDS
) -> Iterator[Finding]:
    """One finding a function: the compile that cost most."""
    dearest: dict[_recompiles.Frame, Finding] = {}
    graphs = first_rank(rows(tables, "graphs", kind="dynamo_output"))
    of_key: dict[str, list[Row]] = {}
    for row in rows(tables, "compiles"):
        of_key.setdefault(row["compile_key"], []).append(row)
    for graph in {row["compile_key"]: row for row in graphs}.values():
        compiles = of_key.get(graph["compile_key"], [])
        whole = sum(_costs.own_us(row) or 0.0 for row in first_rank(compiles)) / 1e6
        if whole < least_seconds:
            continue
        whole -= _starts.once_seconds(tables, {graph["compile_key"]})
        if whole < least_seconds:
            continue
        found = repeated(operations(graph["text"] or ""), fewest_blocks)
        if found is None or whole * found.share < least_seconds or _too_small(tables, found):
            continue
        frame = _recompiles.frame_of(compiles[0])
        known = dearest.get(frame)
        if known is None or whole * found.share > (known.cost.seconds or 0.0):
            dearest[frame] = _finding(tables, compiles, graph, found, whole)
    yield from dearest.values()


def _too_small(tables: Tables, found: Blocks) -> bool:
    """Whether calling each block by itself would take much of the step; not where none is timed."""
    step = step_ms(tables, "compiled")
    return step is not None and found.count * _ENTRY_MS > _MOST_ENTERING * step


def _finding(
    tables: Tables, compiles: list[Row], graph: Row, found: Blocks, whole: float
) -> Finding:
    cost = whole * found.share
    each = len(found.operations)
    call = _compile_call(tables, graph["compile_key"])
    what, code = _instead(graph["text"] or "", found)
    return Finding(
        code=CODE,
        rule="ct-repeated-blocks",
        severity=_starts.severity(tables, cost),
        title=f"{found.count} equal blocks of {plural(each, 'operation')} are compiled one by one",
        explanation=(
            f"They are {percent(each * found.count / found.graph_operations)} of a graph that took "
            f"{seconds(whole)} to compile. Compiled by itself, one of them serves for all."
        ),
        cost=Cost(seconds=cost, about="compiling all blocks but one, without a warm cache"),
        confidence="derived",
        location=call or found.place,
        evidence=(
            from_row(
                f"compile {graph['compile_id']}: {plural(found.graph_operations, 'operation')}, "
                f"the same {each} {'in a row ' if found.in_a_row else ''}{found.count} times",
                "graphs",
                graph,
            ),
        ),
        what_to_do=(
            f"Compile {what} instead of the whole. Nothing fuses across its edges then: compare "
            f"the step's time.{_nested(tables)}"
        ),
        snippet=Snippet("python", code),
        also_at=(found.place,) if call and found.place else (),
        about=about(*compiles[:1]),
    )  # fmt: skip


def _instead(text: str, found: Blocks) -> tuple[str, str]:
    """What to compile: each of the modules in a row, else the function that a loop calls."""
    function = found.place.function if found.place else None
    if function is None or _MODULES.search(text, 0, _HEAD):
        code = "for block in model.blocks:  # the module that holds them\n    block.compile()"
        return "the block", f"{code}  # instead of torch.compile(model)"
    if function == "forward":
        code = "block.compile()  # the module that the loop calls, instead of torch.compile(model)"
        return f"the module whose forward() is at {short(found.place)}", code
    return f"{function}()", f"{function} = torch.compile({function})  # not what calls it in a loop"


def _nested(tables: Tables) -> str:
    version = _versions.torch_version(tables)
    if version is None or version < _NESTED_SINCE:
        return ""
    return (
        " To keep one graph, call the block through torch.compiler.nested_compile_region instead: "
        "what it marks is compiled once and used again."
    )


def _compile_call(tables: Tables, key: str) -> Location | None:
    """The torch.compile call that the compile belongs to."""
    region = _places.region_of(tables, key)
    return compile_call(region) if region else None
