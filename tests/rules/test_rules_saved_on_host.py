"""Tensors saved for the backward that are copied to the host and back."""

import pytest

from traceview.derive.time.details import TO_DEVICE, TO_HOST
from traceview.rules import mem_saved_on_host

LINE = {"kind": "save_on_cpu", "name": "save_on_cpu()", "file": "/u/train.py", "line": 64}


def found(make, to_host=4.0, to_device=4.2, lines=(LINE,), eager_ms=10.0):
    detail = {"stance": "compiled", "category": "copy", "clock": "device"}
    tables = make(
        noted_lines=list(lines),
        account_details=[
            {**detail, "what": TO_HOST, "ms": to_host, "count": 80.0},
            {**detail, "what": TO_DEVICE, "ms": to_device, "count": 81.0},
        ],
        speedups=[{"eager_ms": eager_ms, "compiled_ms": 12.0, "outcome": "hurt"}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 12.0}],
    )
    return list(mem_saved_on_host.check(tables))


def test_both_ways_are_the_cost_and_the_context_is_the_place(make):
    (finding,) = found(make)
    assert (finding.location.line, finding.severity) == (64, "warning")
    assert finding.cost.ms_per_step == pytest.approx(8.0)  # a batch goes one way only
    assert finding.evidence[0].text == "80 copies each way: 8.00 ms"


@pytest.mark.parametrize("case", [{"to_host": 0.0}, {"to_device": 0.3}, {"lines": ()}])
def test_a_batch_that_is_sent_and_a_loss_that_is_read_are_none(make, case):
    assert found(make, **case) == []
