"""A short script with a real torch and both halves of the collector."""

import importlib.util
import json
import sys

import pytest
from parent_helpers import Listener, run_script

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]


def events(run, name):
    lines = []
    for path in (run.folder / "raw" / name).glob("events-*.jsonl"):
        lines += path.read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_script_of_three_steps(tmp_path):
    body = """
    import torch
    model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
    for _ in range(3):
        model(torch.randn(2, 4))
    """
    console = Listener()
    run = run_script(tmp_path, sys.executable, body, console)
    assert [record.name for record in run.manifest.passes] == ["cold"]
    assert any(line.startswith(("cold compile", "compiling ")) for line in console.shown)
    (end,) = [event for event in events(run, "cold") if event["event"] == "end"]
    assert end["steps_seen"] == 3
    replayed = [event for event in events(run, "cold") if event["event"] == "block"]
    assert {event["stance"] for event in replayed if event["replayed"]} == {"eager", "compiled"}
    assert len(list((run.folder / "tlparse/cold").glob("*/index.html"))) == 1
