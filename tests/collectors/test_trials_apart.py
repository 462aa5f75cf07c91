"""A process of its own for a patch, of a script whose compiled module is never called."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_runs import diagnose, fork_scripts

from traceview.collectors import CollectOptions
from traceview.collectors.trials import Asked, Trials
from traceview.run import Run
from traceview.trials.reading import read_apart

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

SCRIPT = """
import os, sys
import time
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.002)
        return x + 1

    def generate(self, x):
        return self.forward(x)

def main(steps):
    net = torch.compile(Net(), backend="eager")
    print(os.environ.get("MY_FLAG"), os.environ["TORCHINDUCTOR_CACHE_DIR"], flush=True)
    for step in range(steps):
        net.generate(torch.zeros(2))
    print("went on to the end")

if __name__ == "__main__":
    main(int(sys.argv[1]))
"""
PATCH = (
    "--- train.py\n+++ train.py\n@@ -8 +8 @@\n-        time.sleep(0.002)\n"
    "+        time.sleep(0.02)\n"
)


def test_its_loop_is_timed_with_a_patch_and_without(tmp_path, monkeypatch):
    done = diagnose(tmp_path, SCRIPT, "--no-baseline", arguments=("20",))
    assert done.returncode == 0
    run = Run.open(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    fork_scripts(monkeypatch)
    options = CollectOptions("script", str(tmp_path / "train.py"), ("100000",))
    console = SimpleNamespace(say=lambda _: None, progress=lambda _: None)
    found = []
    with Trials(options, run, console) as trials:
        patched = Asked("patch train.py:8", patch=PATCH)
        flagged = Asked("env.MY_FLAG=7", ("env.MY_FLAG=7",))
        said = []
        for asked in (None, patched, flagged):
            raw, ending = trials.carry_out_apart(asked, seconds=1.0, timeout_s=90.0)
            assert (ending.kind, ending.code) == ("exit", 0)
            assert "to the end" not in (raw / "stdout.txt").read_text()
            found.append(read_apart(raw))
            said.append((raw / "stdout.txt").read_text().split())
    assert [flag for flag, _ in said] == ["None", "None", "7"]
    folders = [folder for _, folder in said]
    assert folders[0] == folders[1] != folders[2], "a variable may change generated code"
    usual, changed, same = (each.loops["for step in range(steps) 1"][0] for each in found)
    assert 2 <= usual < 20 <= changed
    assert 2 <= same < 20
    assert [each.step_ms for each in found] == [None, None, None]
    assert (Path(tmp_path) / "train.py").read_text() == SCRIPT
    assert json.loads((raw / "ticks.json").read_text())


LATE = """
import sys
import torch

def main(steps):
    inner = torch.nn.Linear(4, 4)
    net = torch.compile(torch.nn.Sequential(inner, torch.nn.Tanh()), backend="eager")
    x = torch.ones(64, 4)
    with torch.no_grad():
        net(x)
        inner.register_forward_hook(lambda module, given, result: result + 1)
        for step in range(steps):
            net(x)

if __name__ == "__main__":
    main(int(sys.argv[1]))
"""


def test_settings_are_in_force_from_the_first_compile_on_and_results_are_checked(
    tmp_path, monkeypatch
):
    assert diagnose(tmp_path, LATE, "--no-baseline", arguments=("20",)).returncode == 0
    run = Run.open(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    options = CollectOptions("script", str(tmp_path / "train.py"), ("1000000",))
    console = SimpleNamespace(say=lambda _: None, progress=lambda _: None)
    guards = Asked("guards", ("torch._dynamo.config.skip_nnmodule_hook_guards=False",))
    unknown = Asked("unknown", ("torch._dynamo.config.no_such_setting=1",))
    found = []
    with Trials(options, run, console) as trials:
        for asked in (None, guards, unknown):
            raw, _ = trials.carry_out_apart(asked, seconds=1.0, timeout_s=90.0, checked=True)
            found.append(read_apart(raw, with_results=True))
        raw, _ = trials.carry_out_apart(None, seconds=1.0, timeout_s=90.0, eager=True)
    usual, right, refused = found
    assert "acc-hook-ignored" in usual.wrong
    assert (right.wrong, right.results, right.refused) == (frozenset(), 1, None)
    assert refused.refused == "this torch has no setting torch._dynamo.config.no_such_setting"
    assert all(each.timed and each.error is None for each in found)
    assert (read_apart(raw).timed, read_apart(raw).wrong) == (True, frozenset())
