"""
## What it finds
A recompile for the last batch of an epoch, which is smaller than the others.

## Why it costs
The batch size becomes symbolic, which takes a second compile of the function (and of its backward).
From then on all batches run the code for any size, which may be slower than the first one.

## Evidence
A recompile because dimension 0 of a tensor went down from the usual size, and the calls with the
smaller size: at most a quarter of those with the usual one.

A warning where the job's length is known and the recompile took at least a second and at least 5 %
of it. Otherwise information: it happens once.

## What to do
Leave that batch out (`DataLoader(…, drop_last=True)`), or pad it to the usual size and mask the
rest. Where every sample counts, such as in an evaluation, run that one batch through the original
module, or mark the size before the first call: that saves the first of the two compiles.

## References
- https://docs.pytorch.org/docs/stable/data.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/_dynamo/pgo.py, `record_automatic_dynamic`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _recompiles, _starts
from traceview.rules.kit import Evidence, Finding, Tables, rows, times

CODE = "TV216"
NEEDS = frozenset({"recompile_causes", "compiles", "input_sizes", "regions", "compile_regions"})
SEVERITIES = ("warning", "info")

_DROP = "loader = DataLoader(dataset, batch_size=..., drop_last=True)"


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function and tensor."""
    for cause in _recompiles.of_sizes(tables, "first_change"):
        met = _recompiles.last_batch(tables, cause)
        if met is None:
            continue
        # Of all tensors that have the batch's size one is enough.
        row = cause.rows[-1]
        marks = cause.marks()
        first = next(
            (
                one["source_name"]
                for one in rows(tables, "recompile_causes", compile_key=row["compile_key"])
                if one["dim"] == 0
            ),
            row["source_name"],
        )
        if row["source_name"] != first:
            continue
        calls = f"{times(met['calls'])} called with sizes {met['sizes']} in the watched calls"
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-last-batch",
            title=f"the last batch is smaller ({row['old']} → {row['new']})",
            explanation=(
                "torch compiles the batch size in as a constant. The smaller batch made it "
                "symbolic, with one more compile, and all batches after it run the code for any "
                "size."
            ),
            info=_starts.job_seconds(tables) is None,
            confidence="derived",
            evidence=(*cause.evidence(), Evidence(calls, "input_sizes")),
            what_to_do=(
                "Leave the last batch out with drop_last=True, or pad it to the usual size. Where "
                "every sample counts, call the original module for it"
                + (", or mark the size before the first call." if marks else ".")
            ),
            paste=_DROP + (f"\n# or: {marks}" if marks else ""),
        )
