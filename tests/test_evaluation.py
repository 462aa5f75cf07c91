"""The evaluation set is complete and means lines that are there."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")

EVALUATION = Path(__file__).resolve().parents[1] / "evaluation"
GPU = EVALUATION / "gpu"
REAL = EVALUATION / "real"


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


def test_a_line_is_named_by_text_that_is_there():
    absent = {}
    for folder, name, cause in CAUSES:
        files = [main_of(name, folder).parent / file for file in as_list(cause["file"])]
        there = {line.strip() for file in files for line in file.read_text().splitlines()}
        if lines := set(as_list(cause["lines"])) - {""} - there:
            absent[(name, *as_list(cause["rules"]))] = lines
    assert absent == {}


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


@pytest.fixture
def real(monkeypatch):
    monkeypatch.syspath_prepend(str(EVALUATION.parent / "benchmarks"))
    return pytest.importorskip("bench_real")


def test_each_real_program_is_listed_described_and_timed(real):
    listed = {program.name for program in real.programs([], gpu=False)}
    sources = {path.stem: path.read_text() for path in (REAL / "programs").glob("*.py")}
    assert listed == {name for name, source in sources.items() if "steady.show()" in source}
    table = re.findall(r"^\| `(\w+)` \|", (REAL / "README.md").read_text(), re.MULTILINE)
    assert set(table) == listed
    assert len(listed) >= 14


def test_a_real_program_is_run_as_its_user_would(real):
    (ranks,) = real.programs(["ddp_two_ranks"], gpu=False)
    words = ranks.options("py").command("py")
    assert words[:3] == ["py", "-m", "torch.distributed.run"]
    assert words[-1] == str(REAL / "programs" / "ddp_two_ranks.py")
    (tests,) = real.programs(["test_two_callables"], gpu=True)
    words = tests.options("py").command("py")
    assert words[:3] == ["py", "-m", "pytest"]
    assert words[-1] == str(REAL / "programs" / "test_two_callables.py")
    assert real.programs(["ddp_two_ranks"], gpu=True) == []


VERDICT = {
    "outcome": "hurt",
    "speedup": 0.84,
    "speedup_interval": [0.78, 0.86],
    "difference_ms": 2.0,
    "unexplained_ms": -0.5,
    "why": [{"ms": 2.5, "finding": None}],
}


def a_row(real, *findings, **verdict):
    diagnosis = {"verdict": {**VERDICT, **verdict}, "findings": list(findings)}
    return real.Row(real.Program("x"), [10.0, 9.0, 8.2], [12.0, 11.25, 10.0], diagnosis, {})


def test_a_verdict_is_compared_with_the_bare_figures(real):
    row = a_row(real)
    assert row.ratio == 0.8
    assert row.inside
    assert row.off == pytest.approx(0.05)
    assert row.width == pytest.approx(0.04 / 0.82)
    assert row.repeats_within == pytest.approx((10 / 12 - 0.8) / 2 / 0.8)
    assert (row.quiet(0.03), row.named, row.weighty) == (True, 0.75, True)
    missed = a_row(real, speedup_interval=[0.81, 0.86], unexplained_ms=None)
    assert (missed.inside, missed.named) == (False, None)
    unmeasured = a_row(real, outcome="not_measured", speedup=None, speedup_interval=None)
    assert (unmeasured.inside, unmeasured.off, unmeasured.width) == (False, None, None)
    assert unmeasured.named is None


def test_a_loss_needs_a_finding_that_explains_it_or_costs_each_step(real):
    finding = {"code": "TV411", "severity": "warning", "cost": {"ms_per_step": 1.0}, "symptoms": []}
    once = {**finding, "cost": {"seconds": 30.0}}
    advice = {**finding, "severity": "info"}
    assert a_row(real, once, advice).remedy is None
    assert a_row(real, {**once, "symptoms": [finding]}).remedy == "TV411"
    named = {"ms": 1.0, "finding": "TV501"}
    assert a_row(real, finding, why=[{"ms": -1.0, "finding": "TV401"}, named]).remedy == "TV501"


def test_the_callable_that_takes_most_time_is_compared(real):
    def run(small, large):
        timed = {"a": (small, 1000), "b": (large, 10)}
        return {"printed": [{"ms_per_step": ms, "steps": n} for ms, n in timed.values()]}

    runs = [run(1.0, 90.0), run(1.0, 110.0)]
    assert real.weightiest(runs, "ms_per_step") == [1.0, 1.0]
    runs[0]["printed"][1]["steps"] = 20
    assert real.weightiest(runs, "ms_per_step") == [90.0, 110.0]


def test_a_bare_program_runs_eager_or_compiled_and_what_it_prints_is_kept(
    real, tmp_path, monkeypatch
):
    program = tmp_path / "programs" / "x.py"
    program.parent.mkdir()
    (tmp_path / "cwd").mkdir()
    program.write_text(
        "import json, os\nprint('step 1')\n"
        "print(json.dumps({'callable': None, 'off': os.environ.get('TORCH_COMPILE_DISABLE')}))\n"
    )
    monkeypatch.setattr(real, "REAL", tmp_path)
    eager, compiled = (
        real.bare(real.Program("x"), tmp_path, real.sys.executable, eager=eager)
        for eager in (True, False)
    )
    assert (eager["exit"], eager["printed"]) == (0, [{"callable": None, "off": "1"}])
    assert compiled["printed"] == [{"callable": None, "off": None}]
