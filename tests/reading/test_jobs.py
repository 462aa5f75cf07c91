"""Which processes are of one start, one job, one pass: from hand-made parts."""

import pytest

from traceview.reading.jobs import Places
from traceview.reading.parts import Part, Seen

SECOND = 1e6


def log(name, pid, rank=None, began=0.0, ended=10.0, *, kind="structured", records=100, **more):
    seen = Seen(
        pid, rank, "record" if rank is not None else None, records=records,
        began_us=began * SECOND, ended_us=ended * SECOND,
        tables=set(more.pop("tables", {"compiles"})), **more,
    )  # fmt: skip
    folder = name.rpartition("/")[0]
    return Part(part=name, name=name, url=name, kind=kind, folder=folder, processes=[seen])


def text(name, *seen):
    folder = name.rpartition("/")[0]
    return Part(part=name, name=name, url=name, kind="textlog", folder=folder, processes=list(seen))


def passes(*found):
    places = Places(found)
    return {part.name: places.homes(part)[0].pass_name for part in found}


def jobs(*found):
    """(job, attempt, ranks) of every start, in order of time."""
    starts = sorted(Places(found).starts, key=lambda start: (start.job, start.attempt))
    return [(start.job, start.attempt, sorted(start.ranks)) for start in starts]


def test_ranks_of_one_folder_are_one_start():
    assert jobs(*(log(f"rank_{r}.log", 10 + r, r) for r in range(8))) == [(1, 1, list(range(8)))]


def test_the_same_ranks_again_are_a_restart():
    first = [log(f"a{r}.log", 10 + r, r, 0, 10) for r in range(2)]
    second = [log(f"b{r}.log", 20 + r, r, 30, 40) for r in range(2)]
    assert jobs(*second, *first) == [(1, 1, [0, 1]), (1, 2, [0, 1])]


def test_a_restart_of_which_one_log_is_lost():
    first = [log(f"a{r}.log", 10 + r, r, 0, 10) for r in (0, 1)]
    second = [log("b0.log", 20, 0, 30, 40)]
    assert jobs(*first, *second) == [(1, 1, [0, 1]), (1, 2, [0])]


def test_two_jobs_at_once_in_two_folders():
    one = [log(f"one/{r}.log", 10 + r, r, r / 10) for r in range(4)]
    other = [log(f"other/{r}.log", 10 + r, r, 0.05 + (3 - r) / 10) for r in range(4)]
    assert jobs(*one, *other) == [(1, 1, [0, 1, 2, 3]), (2, 1, [0, 1, 2, 3])]


def test_two_jobs_at_once_in_one_folder():
    one = [log(f"x{r}.log", 10 + r, r) for r in range(2)]
    other = [log(f"y{r}.log", 20 + r, r, 5, 15) for r in range(2)]
    assert jobs(*one, *other) == [(1, 1, [0, 1]), (2, 1, [0, 1])]


def test_a_folder_a_node_and_the_same_pids_on_every_node():
    found = [log(f"node-{r // 4}/t{r}.log", 100 + r % 4, r) for r in range(16)]
    assert jobs(*found) == [(1, 1, list(range(16)))]


def test_folders_of_two_jobs_each_with_a_folder_a_node():
    found = [
        log(f"{job}/node{r // 2}/{r}.log", 100, r, 0.1 * r)
        for r in range(4)
        for job in ("one", "two")
    ]
    assert jobs(*found) == [(1, 1, [0, 1, 2, 3]), (2, 1, [0, 1, 2, 3])]


def test_a_folder_a_rank_with_restarts_in_each():
    found = [
        log(f"rank{r}/{attempt}.log", 100 + attempt, r, 100 * attempt, 100 * attempt + 10)
        for r in range(4)
        for attempt in range(3)
    ]
    assert jobs(*found) == [(1, n, [0, 1, 2, 3]) for n in (1, 2, 3)]


def test_attempts_in_folders_of_torchrun():
    found = [
        log(f"run/attempt_{attempt}/{r}/t.log", 100 + attempt, r, 100 * attempt, 100 * attempt + 9)
        for r in range(2)
        for attempt in range(2)
    ]
    assert jobs(*found) == [(1, 1, [0, 1]), (1, 2, [0, 1])]


def test_processes_without_a_rank_that_never_met_are_runs_of_their_own():
    assert len(jobs(log("a.log", 1, None, 0, 10), log("b.log", 2, None, 20, 30))) == 2


def test_processes_without_a_rank_that_overlap_are_one_start():
    assert len(jobs(log("a.log", 1, None, 0, 10), log("b.log", 2, None, 5, 30))) == 1


def test_pods_without_ranks_are_told_by_their_folders():
    pods = [log(f"pod-{n}/t.log", 1, None, n) for n in range(3)]
    assert len(jobs(*pods)) == 1
    assert len(jobs(log("train/t.log", 1), log("judge/t.log", 1))) == 2


def test_a_helper_of_a_rank_is_no_restart():
    found = [log("a.log", 1, 0, 0, 100), log("b.log", 2, 0, 50, 60, records=10)]
    assert jobs(*found) == [(1, 1, [0])]


def test_the_start_with_most_ranks_is_the_pass_that_the_report_speaks_of():
    tried = [log("a0.log", 1, 0, 0, 5)]
    ran = [log(f"b{r}.log", 10 + r, r, 50, 500) for r in range(2)]
    after = [log("c0.log", 20, 0, 600, 601)]
    assert passes(*tried, *ran, *after) == {
        "a0.log": "logs.2", "b0.log": "logs", "b1.log": "logs", "c0.log": "logs.3",
    }  # fmt: skip


def test_a_text_log_goes_with_the_process_of_its_pid_and_rank():
    logs = [log(f"node{n}/trace/t.log", 100, n, tables={"graph_breaks"}) for n in range(2)]
    both = text("all.txt", Seen(100, 0, "record"), Seen(100, 1, "record"))
    first, second = Places([*logs, both]).homes(both)
    assert (first.log, first.rank, first.told) == ("node0/trace/t.log", 0, ["graph_breaks"])
    assert (second.log, second.rank) == ("node1/trace/t.log", 1)


def test_a_text_log_without_ranks_goes_with_the_process_of_its_folder():
    logs = [log(f"node{n}/trace/t.log", 100, n) for n in range(2)]
    near = text("node1/stderr.txt", Seen(100))
    home = Places([*logs, near]).homes(near)[0]
    assert (home.log, home.rank) == ("node1/trace/t.log", 1)


def test_a_text_log_of_no_known_process_goes_to_the_nearest_start():
    logs = [log("one/t.log", 1, 0), log("two/t.log", 2, 0)]
    stray = text("two/more/stderr.txt", Seen())
    assert Places([*logs, stray]).homes(stray)[0].pass_name == passes(*logs)["two/t.log"]


def test_a_trace_learns_its_rank_from_the_process():
    trace = log("prof/a.json", 11, None, 3, 4, kind="kineto", tables={"kernels"})
    assert Places([log("t.log", 11, 5), trace]).homes(trace)[0].rank == 5


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_files_does_not_matter(order):
    found = [log(f"n{r}/{a}.log", 7, r, 100 * a, 100 * a + 9) for r in range(3) for a in range(2)]
    assert jobs(*found[::order]) == [(1, 1, [0, 1, 2]), (1, 2, [0, 1, 2])]


def test_another_script_in_the_same_folder_is_another_job():
    first = log("a.log", 1, 0, 0, 10, scripts={"/w/rollout.py"})
    assert jobs(first, log("b.log", 2, 0, 20, 30, scripts={"/w/judge.py"})) == [
        (1, 1, [0]), (2, 1, [0]),
    ]  # fmt: skip
    assert jobs(first, log("b.log", 2, 0, 20, 30, scripts={"/w/rollout.py", "/w/eval.py"})) == [
        (1, 1, [0]), (1, 2, [0]),
    ]  # fmt: skip
