"""The evaluation set is complete and means lines that are there."""

import json
from collections import Counter
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")

EVALUATION = Path(__file__).resolve().parents[1] / "evaluation"
GPU = EVALUATION / "gpu"


def expected(folder):
    return tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))


EXPECTED = expected(EVALUATION)
CAUSES = [
    (folder, name, cause)
    for folder in (EVALUATION, GPU)
    for name, entry in expected(folder).items()
    for cause in entry.get("causes", ())
]


def as_list(value):
    return [value] if isinstance(value, str) else value


def main_of(name, whole=EVALUATION):
    folder = whole / "scripts" / name
    return folder / "main.py" if folder.is_dir() else folder.with_suffix(".py")


@pytest.mark.parametrize("folder", [EVALUATION, GPU], ids=["all", "gpu"])
def test_each_script_has_its_answer_and_each_answer_its_script(folder):
    scripts = folder / "scripts"
    names = {path.name.partition(".")[0] for path in scripts.iterdir()} - {"__pycache__"}
    assert names == set(expected(folder))
    assert all(main_of(name, folder).is_file() for name in names)


def test_each_twin_of_a_script_that_needs_a_gpu_says_what_it_gains():
    twins = 0
    for name, entry in expected(GPU).items():
        has_twin = main_of(name, GPU).with_suffix(".fixed.py").is_file()
        assert has_twin == (entry.get("unit") in ("ms_per_step", "seconds"))
        twins += has_twin
    assert twins >= 10


def test_there_are_enough_of_each_kind():
    groups = Counter(entry["group"] for entry in EXPECTED.values())
    assert set(groups) == {"healthy", "one", "several"}
    assert min(groups.values()) >= 28
    for group in groups:
        entries = [entry for entry in EXPECTED.values() if entry["group"] == group]
        assert sum(not entry["seen"] for entry in entries) >= len(entries) // 3
    assert sum(main_of(name).with_suffix(".fixed.py").is_file() for name in EXPECTED) >= 20


@pytest.mark.parametrize(
    ("folder", "name", "cause"),
    CAUSES,
    ids=[f"{name}-{as_list(c['rules'])[0]}" for _, name, c in CAUSES],
)
def test_a_line_is_named_by_text_that_is_there(folder, name, cause):
    files = [main_of(name, folder).parent / file for file in as_list(cause["file"])]
    there = {line.strip() for file in files for line in file.read_text().splitlines()}
    assert set(as_list(cause["lines"])) - {""} <= there


def test_causes_fit_the_group():
    counts = {name: len(entry.get("causes", ())) for name, entry in EXPECTED.items()}
    for name, entry in EXPECTED.items():
        least = {"healthy": 0, "one": 1, "several": 2}[entry["group"]]
        assert counts[name] == least if least < 2 else counts[name] >= least
        assert entry.get("first", 1) <= max(counts[name], 1)


@pytest.fixture
def pairs(monkeypatch):
    monkeypatch.syspath_prepend(str(EVALUATION.parent / "benchmarks"))
    return pytest.importorskip("evaluation_pairs")


def a_script(pairs, **columns):
    cause = {"rules": ["rc-tensor-meta"], "file": "x.py", "lines": "y = net(x)"}
    return pairs.Script("x", "one", seen=True, length="--steps", few=40, causes=[cause], **columns)


def test_a_figure_is_as_sure_as_the_finding_that_has_it(pairs):
    limit = {"rule": "rc-limit-hit", "confidence": "derived", "cost": {"ms_per_step": 0.2}}
    cause = {"rule": "rc-tensor-meta", "confidence": "measured", "cost": {"seconds": 3.0}}
    diagnosis = {"findings": [{**cause, "symptoms": [{**limit, "symptoms": []}]}]}
    assert list(pairs.predictions(a_script(pairs), diagnosis)) == [
        pairs.Prediction("rc-tensor-meta", "seconds", 3.0, "measured"),
        pairs.Prediction("rc-limit-hit", "ms_per_step", 0.2, "derived"),
    ]
    assert not list(pairs.predictions(a_script(pairs, cured="gb-item"), diagnosis))


def test_the_best_turns_are_compared(pairs, tmp_path):
    names = ("wall_s", "cpu_s", "compile_s", "compile_cpu_s")
    turns = {"script_s": [(30.0, 9.5, 25.0, 8.0), (10.0, 9.0, 8.0, 7.5)],
             "fixed_s": [(6.0, 5.5, 4.5, 4.0), (7.0, 5.0, 5.0, 3.5)]}  # fmt: skip
    timed = {
        side: [dict(zip(names, turn, strict=True)) for turn in both] for side, both in turns.items()
    }
    (tmp_path / "x.pair.json").write_text(json.dumps(timed))
    script = a_script(pairs)
    wall, cpu = (pairs.gain(script, tmp_path, pairs.SECONDS, cpu=cpu) for cpu in (False, True))
    assert (wall.value, wall.whole_s) == (3.5, 4.0)
    assert (cpu.value, cpu.whole_s) == (4.0, 4.0)
    assert pairs.gain(script, tmp_path, pairs.MS) is None


def test_the_share_of_a_processor_is_that_of_compiling_again(pairs, tmp_path):
    script, raw = a_script(pairs), tmp_path / "x" / "raw" / "cold"
    assert pairs.processor_share(script, tmp_path) is None
    raw.mkdir(parents=True)
    events = [("0/0", 900.0, 1000.0), ("0/1", 400.0, 1000.0), ("1/1", 600.0, 1000.0)]
    lines = [
        {"event": "compile", "compile_id": id_, "cpu_ms": cpu, "duration_ms": wall}
        for id_, cpu, wall in events
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (raw / "events-1.jsonl").write_text(text)
    assert pairs.processor_share(script, tmp_path) == 0.5
