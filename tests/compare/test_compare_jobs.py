"""Two jobs are compared over all their ranks; a job and a run of one process rank by rank."""

import pytest
from recorded_jobs import diagnosis
from sides import changed, side

from traceview.compare import Side, compare


@pytest.fixture(scope="module")
def job():
    return Side("restarted", "run", diagnosis("restarted"))


def test_functions_of_all_ranks_are_matched_with_how_many_ranks(job):
    found = compare(job, job)
    assert {frame.change for frame in found.frames} == {"same"}
    (forward,) = [frame for frame in found.frames if frame.name == "forward"]
    assert (forward.before_ranks, forward.after_ranks) == (4, 4)
    reported = {frame.name: frame.rank_seconds for frame in job.diagnosis.job.frames}
    assert forward.after_seconds == reported["forward()"]
    assert sum(chain.after_recompiles for chain in found.recompiles) == 5


def test_a_break_on_one_rank_only_came(job):
    two = Side("two_jobs", "run", diagnosis("two_jobs"))

    def without(data):
        data["job"]["breaks"] = []

    found = compare(changed(two, without), two).breaks
    assert {(row.change, row.before_ranks, row.after_ranks) for row in found} == {("came", None, 1)}
    assert {row.after.line for row in found} == {row.line for row in two.diagnosis.job.breaks}


def test_seconds_on_more_ranks_count_by_rank(job):
    def twice(data):
        for row in data["job"]["frames"]:
            row["ranks"]["count"] *= 2
            row["rank_seconds"] *= 2

    def slower(data):
        for row in data["job"]["frames"]:
            row["rank_seconds"] *= 2

    assert {frame.change for frame in compare(job, changed(job, twice)).frames} == {"same"}
    assert "grew" in {frame.change for frame in compare(job, changed(job, slower)).frames}


def test_a_job_and_a_run_are_compared_by_one_rank(job):
    found = compare(job, side("good-gb_item"))
    assert all(frame.before_ranks is None and frame.after_ranks is None for frame in found.frames)


def test_rows_that_the_report_has_no_room_for_count(job):
    def cut(data):
        data["job"]["left_out"] = {"failures": 60}

    found = {pair.key: pair for pair in compare(job, changed(job, cut)).figures}
    failures = found["job_failures"]
    assert (failures.before + 60, failures.change) == (failures.after, "worse")
