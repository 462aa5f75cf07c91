"""The user's lines, marked while torch compiles for real; and the ceilings at the end."""

import pytest
from child_runs import names_in, run_bare, run_child, write_script

pytestmark = pytest.mark.live


def test_marking_lines_changes_nothing_for_dynamo(tmp_path):
    script = write_script(
        tmp_path,
        """
        import json, sys
        import torch
        from torch._dynamo.utils import counters

        def helper(x):
            for part in (x, x + 1):
                yield part.cos()

        @torch.compile(backend="eager")
        def f(x):
            y = x.sin()
            if y.sum().item() > 100:
                y = y - 1
            torch._dynamo.graph_break()
            return sum(helper(y))

        x = torch.ones(4)
        for _ in range(400):
            result = f(x)
        print(json.dumps(counters["frames"], sort_keys=True), counters["stats"], result)
        print(sys.gettrace())
        """,
    )
    bare = run_bare(script)
    run = run_child(script, steps=5, blocks=1, profile=True, run_to_end=True)
    assert run.out == bare.stdout
    lines = {w["stance"]: w for w in run.of("profile") if w["purpose"] == "lines"}
    assert {w["lines_ended"] for w in lines.values()} == {None}
    assert lines["eager"]["line_files"] == [str(script)]
    marked = {
        stance: {int(n.split(":")[1]) for n in names_in(run, w) if n.startswith("traceview line ")}
        for stance, w in lines.items()
    }
    assert marked["eager"] >= {7, 8, 12, 13, 15, 16, 20}
    assert marked["compiled"] >= {13, 20}
    assert not run.of("compile")[3:]  # the frame, and what follows its two breaks
    ceilings, notes = run.of("ceiling"), [e for e in run.of("note") if "ceiling" in e["what"]]
    assert len(ceilings) + len(notes) == 6  # a page fault, two copies, three products
    assert all(event["value"] > 0 for event in ceilings)
