"""torch.compile as the decorator of a class, seen live: its instances' calls are counted."""

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live

SCRIPT = """
    import torch

    @torch.compile(backend="eager")
    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            return torch.tanh(self.inner(x))

    one, other = Field(), Field()
    x = torch.ones(2, 4)
    for _ in range(30):
        one(x)
    print(type(one).__name__, tuple(other(x).shape), one.training)
"""


def test_calls_of_the_instances_of_a_compiled_class(tmp_path):
    run = run_child(write_script(tmp_path, SCRIPT))
    assert run.returncode == 0, run.err
    assert "Field (2, 4) True" in run.out
    (region,), end = run.of("region"), run.of("region_end")[-1]
    assert (region["kind"], region["name"], region["target_line"]) == ("class", "Field", 10)
    assert (end["calls"], end["is_anchor"]) == (31, True)
    assert run.of("end")[0]["steps_seen"] == 31
