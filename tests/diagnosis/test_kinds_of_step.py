"""A script that times two compiled callables hears of both."""

from __future__ import annotations

import pytest

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Verdict
from traceview.diagnosis.verdict import other_steps
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "pid": 7}


def tables(pairs_of_other):
    def pair(anchor, index, used):
        return {
            **HEAD, "anchor_region_id": anchor, "pair_index": index, "speedup": 4.0 - 3.0 * anchor,
            "used": used, "compiles_inside": 0,
        }  # fmt: skip

    pairs = [pair(1, i, True) for i in range(4)]
    pairs += [pair(0, 10 + i, False) for i in range(pairs_of_other)]
    regions = [{**HEAD, "region_id": i, "name": name} for i, name in enumerate(("Chain", "Stack"))]
    speedups = [{**HEAD, "basis": "paired_blocks"}]
    return Tables(
        {
            "block_pairs": from_rows("block_pairs", pairs),
            "regions": from_rows("regions", regions),
            "speedups": from_rows("speedups", speedups),
        }
    )


def said(pairs_of_other, outcome="neutral"):
    found = tables(pairs_of_other)
    return other_steps(found, Focus.of(found), Verdict(outcome, "", basis="paired_blocks"))


def test_both_are_named():
    words = said(3)
    assert words == "This is about calls of Stack; timed as well: Chain 4.00× (3 block pairs)."


@pytest.mark.parametrize("pairs", [0, 2])
def test_too_few_pairs_say_nothing(pairs):
    assert said(pairs) == ""


def test_a_failed_script_has_its_own_sentence():
    assert said(3, "failed") == ""
