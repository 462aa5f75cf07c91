"""A script that compiles for each call, seen live."""

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live

SCRIPT = """
    import torch

    def smooth(x):
        return torch.tanh(x) * 0.5

    x = torch.ones(4)
    for _ in range(80):
        torch.compile(smooth, backend="eager")(x)
    for _ in range(2):
        torch.compile(smooth, backend="eager")(x)
"""


def test_what_one_line_compiles_again_and_again_is_one_region_in_the_end(tmp_path):
    run = run_child(write_script(tmp_path, SCRIPT))
    assert run.returncode == 0, run.err
    lines = [event["call_line"] for event in run.of("region")]
    assert (lines.count(9), lines.count(11)) == (64, 2)
    ends = {event["region_id"]: event for event in run.of("region_end")}
    assert [ends[n]["compile_calls"] for n in range(66)] == [1] * 63 + [17, 1, 1]
    assert [ends[n]["calls"] for n in range(66)] == [1] * 63 + [17, 1, 1]
