"""Rules whose predictions were off when their remedies were tried.

`benchmarks/bench_try.py --scores` compares what findings expected a step to save with what it
saved. Where that is off by more than 25 % in the median, a figure of the rule's for a step is no
longer called measured: what is measured is what something takes, and that a remedy saves it is
derived.
"""

from __future__ import annotations

from msgspec.structs import replace

from traceview.rules.finding import Finding

#: Rule → its score, from docs/measurements.md, "Trials".
OFF: dict[str, str] = {}


def as_scored(finding: Finding) -> Finding:
    """``finding``, with a figure for a step called what its rule's score allows."""
    if finding.rule in OFF and finding.confidence == "measured" and finding.cost.ms_per_step:
        return replace(finding, confidence="derived")
    return finding
