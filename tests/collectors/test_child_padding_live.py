"""Padding on trial: what is padded, what is sliced back, what is refused."""

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live
SERVICE = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, ids, mask, pooled=False):
            x = (ids * mask).cumsum(1)
            return x.sum(1) if pooled else (x, {"more": x - SHIFT})

    net = torch.compile(Net().eval(), backend="eager", dynamic=False)
    with torch.no_grad():
        for number in range(100000):
            length = (5, 8, 7)[number % 3]
            net(torch.ones(2, length), mask=torch.ones(2, length) POOLED)
"""
BOTH = ("pad=ids:1:4/8", "pad=mask:1:4/8")


def tried(tmp_path, *remedies, text=SERVICE, shift="1", pooled=""):
    text = text.replace("SHIFT", shift).replace("POOLED", pooled)
    asked = [{"name": "+".join(each), "settings": each, "patch": None} for each in remedies]
    config = {"mode": "trials", "trials": asked, "trial_seconds": 0.2, "blocks": None}
    run = run_child(write_script(tmp_path, text), **config)
    return run, {event["name"]: event for event in run.of("trial")}


def test_calls_share_one_graph_and_their_outputs_agree(tmp_path):
    small = ("pad=ids:1:4/6", "pad=mask:1:4/6")
    run, ends = tried(tmp_path, BOTH, small, ("pad=no:1:8",))
    end = ends["+".join(BOTH)]
    assert (end["state"], end["why"], end["graphs"]) == ("measured", None, 1)
    checks = [row for row in run.of("output_check") if row.get("trial") == "+".join(BOTH)]
    assert {row["output"]: row["same"] for row in checks} == {
        "output[0]": True, "output[1]['more']": True,
    }  # fmt: skip
    assert ends["+".join(small)]["state"] == "not_applicable"
    assert "above 6" in ends["+".join(small)]["why"]
    assert "no tensor no with a dimension 1" in ends["pad=no:1:8"]["why"]


MARKED = """
    import torch

    tables = [torch.ones(4), torch.ones(4)]

    def backend(graph, inputs):
        kinds = [n.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
                 for n in graph.graph.nodes if n.op == "placeholder"]
        print(kinds, [hasattr(table, "_dynamo_static_input_type") for table in tables])
        return graph.forward

    @torch.compile(backend=backend)
    def look_up(table, rest):
        return table + rest["x"]

    for number in range(100000):
        look_up(tables[0], rest={"x": tables[1]})
"""


def test_arguments_are_marked_during_calls_only(tmp_path):
    run, ends = tried(tmp_path, ("static=table",), ("static=no",), ("static=rest[]",), text=MARKED)
    end = ends["static=table"]
    assert (end["state"], end["why"]) == ("measured", None)
    assert "a call has no tensor no" in ends["static=no"]["why"]
    assert ends["static=rest[]"]["state"] == "measured"
    assert run.out.split("\n")[:3] == [
        "[None, None] [False, False]",
        "['unguarded', None] [True, False]",
        "[None, 'unguarded'] [False, True]",
    ]


def test_what_padding_changes_is_seen_and_what_is_pooled_is_refused(tmp_path):
    (tmp_path / "mean").mkdir()
    run, ends = tried(tmp_path / "mean", BOTH, shift="x.mean(1, keepdim=True)")
    assert ends["+".join(BOTH)]["state"] == "measured"
    checks = [row for row in run.of("output_check") if row.get("trial") == "+".join(BOTH)]
    assert {row["output"]: row["same"] for row in checks}["output[1]['more']"] is False
    (tmp_path / "pooled").mkdir()
    run, ends = tried(tmp_path / "pooled", BOTH, pooled=", pooled=True")
    assert ends["+".join(BOTH)]["state"] == "not_applicable"
    assert "can't be sliced back" in ends["+".join(BOTH)]["why"]
