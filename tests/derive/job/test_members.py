"""Who took part in a job."""

import pytest
from job_rows import compiled, job

from traceview.derive.job.attempts import attempts, in_order, ranges, with_member
from traceview.tables import Tables


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([], ""),
        (["3"], "3"),
        (["0", "1"], "0-1"),
        (["2", "0", "1", "5", "10", "9"], "0-2,5,9-10"),
        (["p77", "1", "0"], "0-1,p77"),
        ([str(rank) for rank in range(512) if rank != 17], "0-16,18-511"),
    ],
)
def test_ranges(members, text):
    assert ranges(members) == text


def test_ranks_are_ordered_by_number_and_processes_come_last():
    assert in_order(["10", "p5", "9", "p12"]) == ["9", "10", "p12", "p5"]


def test_a_process_without_a_rank_is_named_by_its_id():
    rows = [
        compiled(3, 0, 1),
        compiled(None, 0, 1, compile_key="part:4711:0:0/0", pid=None),
        compiled(None, 0, 1, compile_key=None, pid=12),
    ]
    found = with_member(job(compiles=rows)["compiles"])["member"].to_list()
    assert found == ["3", "p4711", "p12"]


def test_attempts_are_the_passes_of_logs_in_order():
    rows = [{**compiled(0, 0, 1), "pass": name} for name in ("logs.10", "logs", "cold", "logs.2")]
    assert attempts(job(compiles=rows)) == ["logs", "logs.2", "logs.10"]


def test_a_measured_run_is_no_job():
    assert attempts(job(compiles=[{**compiled(0, 0, 1), "pass": "cold"}])) == []
    assert attempts(Tables()) == []
