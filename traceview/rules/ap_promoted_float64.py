"""
## What it finds
Compiled code that works in float64 because one of its tensors is float64, often a table or a
constant that comes from numpy, whose default it is.

## Why it costs
Where float64 meets float32, the result is float64, and so is all that is computed from it: twice
the bytes, half of the elements in each vector register of a CPU, and on a GPU a half to a 64th of
the arithmetic. Functions such as `sin` and `exp` take many more instructions. Compiling keeps the
dtypes, so eager steps pay for it as well.

## Evidence
Dynamo's graph: an operation that takes a float64 tensor next to a narrower one gives float64. What
the script casts itself (`x.double()`) is not reported, nor are Python numbers and tensors without
dimensions, which promote nothing. Reported where generated kernels that handle float64 take at
least 5 % of the compiled step, or where a float64 result leaves the graph, so that the code after
it handles twice the bytes. The cost is half of these kernels' time: their bytes halve.

A warning on a GPU where that is a notable part of the step. Otherwise information.

## What to do
Cast the table once, where it is made: `torch.as_tensor(table, dtype=torch.float32)`, or
`table.astype("float32")` in numpy. Where the digits are needed, keep float64 and cast the result.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must take.

## References
- https://docs.pytorch.org/docs/stable/tensor_attributes.html
- https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html
- torch/_prims_common/__init__.py, `elementwise_dtypes`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _recompiles
from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    step_ms,
)
from traceview.words.text import listed

CODE = "TV426"
NEEDS = frozenset({"promotions", "compiles"})
SEVERITIES = ("warning", "info")

#: Less of a step is not worth a thought about digits.
LEAST_SHARE = NOTABLE_SHARE
#: A local of the compiled function, which its caller passed in.
_GIVEN = re.compile(r"L\['(?!self')\w+'\]")
_CAST = 'table = torch.as_tensor(table, dtype=torch.float32)  # or table.astype("float32")'


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding a function."""
    step, owners = step_ms(tables, "compiled"), tables.once(Owners)
    compiles = {row["compile_key"]: row for row in rows(tables, "compiles")}
    for row in first_rank(rows(tables, "promotions")):
        ms, code = row["ms"], compiles.get(row["compile_key"])
        notable = ms is not None and bool(step) and ms >= least_share * (step or 0.0)
        if code is None or not (notable or row["returned"]):
            continue
        read = Location(row["file"], row["line"]) if row["file"] else None
        given = [source for source in row["sources"] if _GIVEN.fullmatch(source)]
        place = (owners.caller(code) if given else None) or read or owners.code(code).place
        names = [_recompiles.readable(source) for source in row["sources"]]
        half = None if ms is None else ms / 2
        on_gpu = row["clock"] == "device"
        text = "half of the time of generated kernels that handle float64, as profiled"
        if row["returned"]:
            text += "; the code after it handles twice the bytes as well"
        is_are = "is" if len(names) == 1 else "are"
        more = plural(row["operations"], "result")
        said = f"compile {row['compile_id']}: {more} of its graph would be narrower"
        evidence = [from_row(said, "promotions", row)]
        if ms is not None:
            share = f", {percent(min(1.0, ms / step))} of it" if step else ""
            spent = f"generated kernels that handle float64: {milliseconds(ms)} a step{share}"
            evidence.append(Evidence(spent, "promotions"))
        yield Finding(
            code=CODE,
            rule="ap-promoted-float64",
            severity=severity(tables, half) if on_gpu and half is not None else "info",
            title=(
                f"{_recompiles.opening(_recompiles.called(code))} computes in float64 because "
                f"{listed(names[:3])} {is_are} float64"
            ),
            explanation=(
                "Where float64 meets float32, the result is float64, and all that is computed from "
                "it. That doubles the bytes"
                + (
                    " and takes a half to a 64th of a GPU's arithmetic."
                    if on_gpu
                    else " and halves the elements in a vector register."
                )
            ),
            cost=Cost(half, None, text),
            confidence="derived",
            location=place,
            about=about(code),
            evidence=tuple(evidence),
            what_to_do=(
                f"Make {'it' if len(names) == 1 else 'them'} float32 once, where the values come "
                "from: numpy's default is float64. Where the digits are needed, cast the result."
            ),
            snippet=Snippet("python", _CAST),
            also_at=(read,) if read and place != read else (),
        )
