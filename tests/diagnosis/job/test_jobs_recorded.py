"""The story of recorded jobs: what was planted in them is what it says."""

import json
from pathlib import Path

import pytest
from recordings import packing

from traceview.derive import derive
from traceview.diagnosis.job.build import job_story
from traceview.inputs import find
from traceview.reading import open_tables, read_all
from traceview.reading.executors import Serial
from traceview.run import Manifest, Run

JOBS = Path(__file__).resolve().parents[3] / "fixtures" / "jobs"
INDEX = json.loads((JOBS / "INDEX.json").read_text())
PLANTED = {name: made["planted"] for name, made in INDEX.items()}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A function: name of a recorded job → its tables, read as ``traceview postmortem`` does."""
    kept = {}

    def load(name):
        if name not in kept:
            folder = tmp_path_factory.mktemp(name)
            packing.unpack(JOBS / f"{name}.tar.xz", folder / "logs")
            run = Run.create(folder / "run", Manifest(target_kind="logs"))
            read_all(run, find([str(folder / "logs")]), Serial())
            kept[name] = derive(open_tables(run), {})
        return kept[name]

    return load


@pytest.fixture
def restarted(read):
    return job_story(read("restarted"), "logs")


def test_the_straggler_its_setting_and_who_waited(restarted):
    planted = PLANTED["restarted"]["straggler"]
    assert restarted.compile.most_rank == f"rank {planted['rank']}"
    assert f"component inductor_config[{planted['setting']}] differs" in restarted.sentence
    assert f"on rank {planted['rank']} alone" in restarted.sentence
    assert [one.rank for one in restarted.stragglers] == ["rank 2"]
    (setting,) = restarted.configs
    assert (setting.name, [side.value for side in setting.sides]) == (
        planted["setting"],
        ["None", "0"],
    )
    assert {wait.rank for wait in restarted.waits} == {"rank 2"}
    # Rank 1's log is cut off before it goes on, so nothing shows that it waited.
    assert restarted.waits[0].ranks.text == "ranks 0 and 3"


def test_the_late_recompile_by_the_profiles_steps(restarted):
    planted = PLANTED["restarted"]["late"]
    assert restarted.late.basis == "profiler_steps"
    (late,) = restarted.late.rows
    assert (late.first_step, late.ranks.count) == (planted["step"], len(planted["ranks"]))
    assert planted["source"] in late.cause


def test_the_other_shape_of_one_rank(restarted):
    planted = PLANTED["restarted"]["other_shape"]
    chains = {chain.ranks.text: chain for chain in restarted.recompiles}
    first = chains[f"rank {planted['rank']}"].links[0]
    assert (first.kind, first.old, first.new) == ("size", *map(str, planted["size"]))
    kinds = {(one.kind, one.groups[-1].ranks.text) for one in restarted.divergences}
    assert ("frames", "rank 3") in kinds
    assert ("graph", "rank 3") in kinds


def test_the_failure_of_the_first_start(restarted):
    planted = PLANTED["restarted"]["failure"]
    failed = next(one for one in restarted.failures if one.attempt is not None)
    assert (failed.attempt, failed.ranks.text) == (planted["attempt"], f"rank {planted['rank']}")
    assert (Path(failed.file).name, failed.line) == (planted["file"], planted["line"])
    assert (failed.name, failed.fail_type) == ("clipped()", planted["fail_type"])


def test_idle_time_of_the_profiles_falls_on_the_other_ranks_compile(restarted):
    rank0 = next(one for one in restarted.idle if one.rank == "rank 0")
    assert rank0.own_compile_s == pytest.approx(0.43, abs=0.05)
    assert rank0.other_compile_s > 1.0


def test_ranks_that_reduce_in_different_orders(read):
    names = {name: job_story(read("two_jobs"), name) for name in ("logs", "logs.2")}
    found = [one for story in names.values() for one in story.divergences]
    orders = [one for one in found if one.kind == "collectives"]
    assert [one.name for one in orders] == [
        PLANTED["two_jobs"]["order_of_collectives"]["function"] + "()"
    ]
    assert "scores" in orders[0].before
    assert "weights" in orders[0].after


def test_a_break_on_one_rank_alone(read):
    planted = PLANTED["two_jobs"]["break_on_one_rank"]
    stories = [job_story(read("two_jobs"), name) for name in ("logs", "logs.2")]
    broken = [one for story in stories for one in story.breaks]
    assert {(one.line, one.ranks.text) for one in broken} >= {(planted["line"], "rank 0")}
    assert not any(one.everywhere for one in broken if one.line == planted["line"])
