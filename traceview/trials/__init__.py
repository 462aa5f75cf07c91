"""Remedies that were tried: which ones, in which order, what was measured, what to recommend."""

from __future__ import annotations

from traceview.trials.model import NotTried, Recommended, Results, Trial, from_json, to_json
from traceview.trials.remedies import Remedy, combinations, named, offered, swept
from traceview.trials.rounds import Plan, results

__all__ = [
    "NotTried",
    "Plan",
    "Recommended",
    "Remedy",
    "Results",
    "Trial",
    "combinations",
    "from_json",
    "named",
    "offered",
    "results",
    "swept",
    "to_json",
]
