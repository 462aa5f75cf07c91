"""The benchmark of trials: what it makes of results, and how it runs a script bare."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

pytest.importorskip("tomllib")
bare_turns = pytest.importorskip("bare_turns")
bench_try = pytest.importorskip("bench_try")
Script = pytest.importorskip("evaluation_set").Script

PATCH = "--- main.py\n+++ main.py\n@@ -1 +1 @@\n-import helper\n+import helper as other\n"


def trial(rule, said, saved, low=1.0, high=1.1):
    return {"rule": rule, "predicted_ms": said, "measured_ms": saved, "interval": [low, high]}


def test_scores_are_medians_of_errors_by_rule(tmp_path):
    trials = [
        trial("gb-item", 1.0, 0.9), trial("gb-item", 2.0, 1.0), trial("gb-item", 4.0, 3.6),
        trial("rc-limit-hit", 1.0, -1.0), trial("rc-limit-hit", 1.0, 1.0, high=1.6),
        trial("gb-item", None, 3.0), trial(None, 1.0, 3.0),
    ]  # fmt: skip
    trials += [trial("ap-gemm-bound", 1.0, saved) for saved in (0.1, 0.2, 2.0)]
    (tmp_path / "a.try.json").write_text(json.dumps({"trials": trials}))
    head, _, *rows = bench_try.scores(tmp_path)
    assert head.startswith("| rule | trials |")
    assert rows == [
        "| ap-gemm-bound | 3 | 1.000 | 0.200 | 90 % | more than 25 % |",
        "| gb-item | 3 | 2.000 | 1.000 | 10 % |  |",
        "| rc-limit-hit | 1 | 1.000 | -1.000 | 200 % | more than 25 % |",
        "",
        '    "ap-gemm-bound": "median error 90 % of 3 trials",',
    ]


def test_ratios_need_every_turn():
    found = {"script": [3.0, 3.3, 3.0], "twin": [1.5, 1.5, 2.0], "remedy": [1.0]}
    assert bare_turns.ratios(found, "twin") == pytest.approx((1.5, 2.2))
    assert bare_turns.ratios(found, "remedy") is None
    assert bare_turns.ratios(found, "other") is None


def test_a_patch_goes_into_a_copy_with_what_the_script_imports(tmp_path, monkeypatch):
    folder = tmp_path / "scripts" / "whole"
    folder.mkdir(parents=True)
    (folder / "helper.py").write_text("x = 1\n")
    (folder / "main.py").write_text("import helper\n")
    monkeypatch.chdir(folder)
    made = bare_turns._patched(folder / "main.py", PATCH, tmp_path / "copy")
    assert made.read_text() == "import helper as other\n"
    assert (made.parent / "helper.py").exists()
    assert (folder / "main.py").read_text() == "import helper\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux")
def test_a_job_has_its_own_cores():
    core = min(os.sched_getaffinity(0))
    code = "import os; print(os.sched_getaffinity(0))"
    words = bare_turns.pinned([sys.executable, "-c", code], (core,))
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"{{{core}}}\n"


def test_turns_go_on_where_they_were_stopped(tmp_path, monkeypatch):
    script = Script(name="a", group="one", seen=True, length="--n", few=4, folder=tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.py").write_text("")
    taken = iter(range(1, 100))

    def once(self, count):
        if next(taken) == 3:
            raise KeyboardInterrupt
        return 0.5, count

    monkeypatch.setattr(bare_turns._Run, "of_one", once)
    sides = {"script": bare_turns.Side(), "remedy": bare_turns.Side(settings=("no_grad",))}
    with pytest.raises(KeyboardInterrupt):
        bare_turns.turns(script, sides, tmp_path, ())
    found = bare_turns.turns(script, sides, tmp_path, ())
    assert found == {"script": [0.5] * 3, "remedy": [0.5] * 3}
    assert next(taken) == 8  # two that were kept, the one that was stopped, four that were left
    other = {**sides, "remedy": bare_turns.Side(settings=("dynamic=None",))}
    bare_turns.turns(script, other, tmp_path, ())
    assert next(taken) == 12  # what was measured of other settings is measured again
