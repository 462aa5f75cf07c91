"""The fuzzer makes inputs that are read, finds what is planted, and its runs add up."""

import contextlib
import json
import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import bench_fuzz
from fuzz_inputs import TARGETS

from traceview.inputs import DamagedInput
from traceview.inputs.look import look
from traceview.parse.kineto import events

KINDS = {"structured", "textlog", "stderr", "kineto", "chromium", "events"}


@pytest.mark.parametrize("target", TARGETS)
def test_most_inputs_are_what_they_should_be(target):
    rng, make, seen = random.Random(1), bench_fuzz.made_by(target), []
    for _ in range(12):
        string = bench_fuzz.varied(rng, [])
        if (made := make(string)) is not None:
            used, data = made
            assert make(used)[1] == data
            with contextlib.suppress(DamagedInput):
                seen.append(look(data[: 1 << 18], "x.log") if data else None)
    named = [each.archive or each.kind for each in seen if each]
    expected = {"archive": {"tar", "zip"}, "textlog": {"textlog", "stderr"}}.get(target, {target})
    assert sum(kind in expected for kind in named) >= 5


@pytest.fixture
def fuzzed(tmp_path, monkeypatch):
    """A fuzzer whose lines are watched by sys.settrace, on any Python, as long as it is used."""
    monkeypatch.setattr(sys, "version_info", (3, 11))
    return bench_fuzz.Fuzzed(tmp_path)


def test_a_planted_defect_is_found_and_so_is_a_hang(fuzzed, monkeypatch):
    make, rng = bench_fuzz.made_by("kineto"), random.Random(3)
    _, data = next(filter(None, (make(bench_fuzz.varied(rng, [])) for _ in range(20))))
    monkeypatch.setattr(fuzzed, "_whole", lambda _: None)
    new, finding = fuzzed.tried(data, whole=False)
    assert any(line.startswith("traceview/parse/kineto/") for line in new)
    assert finding is None
    assert len(fuzzed.tried(data, whole=False)[0]) < len(new) / 10

    monkeypatch.setattr(events.Gathered, "add", lambda *_: 1 / 0)
    kind, place, _ = fuzzed.tried(data, whole=False)[1]
    assert (kind, place.split()[0]) == ("crash", "ZeroDivisionError")

    def loop(*_):
        while True:
            time.time()

    monkeypatch.setattr(events.Gathered, "add", loop)
    monkeypatch.setattr(bench_fuzz, "HANG_S", 0.2)
    assert fuzzed.tried(data, whole=False)[1][0] == "hang"


def test_runs_add_up_and_a_finding_is_kept_once(tmp_path, capsys):
    path = tmp_path / "of/state.json"
    for run in (1, 2):
        state = bench_fuzz.State(path, ["kineto"])
        new = [(b"string", ["traceview/x.py:1"])]
        found = [("crash", "x.py:1", "it failed", b"input")]
        done = {"target": "kineto", "runs": 5, "kept": new, "findings": found}
        state.add(done | {"cpu_s": 2.0, "slowest": 0.1})
        state.save()
        kept = json.loads(path.read_text())
        assert kept["targets"]["kineto"]["runs"] == 5 * run
        assert len(kept["targets"]["kineto"]["corpus"]) == 1
        assert [entry["times"] for entry in kept["findings"]] == [run]
    assert state.corpus("kineto") == [b"string"]
    assert Path(kept["findings"][0]["file"]).read_bytes() == b"input"
    assert capsys.readouterr().out.count("it failed") == 1
