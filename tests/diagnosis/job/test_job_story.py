"""The story of hand-made jobs: its sentence, its figures, and that it scales."""

import pytest
from job_rows import ZERO, S, compiled, component, job, key, looked

from traceview.derive.job import job_tables
from traceview.diagnosis.job.build import job_story

AUTOTUNE = "inductor_config[max_autotune]"


def story(name="logs", **rows):
    tables = job(**rows)
    for table, frame in job_tables(tables).items():
        tables.put(table, frame)
    return job_story(tables, name)


def slow_rank(count, odd, *, seconds=301, differs=True):
    """``count`` ranks, one of which misses what the others find, by another setting."""
    rows = {"compiles": [], "cache_events": [], "cache_components": []}
    for rank in range(count):
        miss = rank == odd
        value = str(miss and differs)
        rows["compiles"] += [compiled(rank, 0, seconds if miss else 10)]
        rows["compiles"] += [compiled(rank, seconds + 0.3, 1, "1/0", co_name="loss")]
        rows["cache_events"].append(looked(rank, "miss" if miss else "hit", f"key of {value}"))
        rows["cache_components"] += [
            component(rank, "gm", "graph"),
            component(rank, AUTOTUNE, value),
        ]
    return rows


def test_the_sentence_names_the_slow_rank_and_the_component():
    found = story(**slow_rank(64, 17))
    assert found.sentence == (
        "302 s of compilation on 64 ranks, 291 s of it on rank 17 alone: its FX graph cache "
        f"missed where others hit (component {AUTOTUNE} differs)."
    )
    assert (found.headline + ".", found.remarks) == (found.sentence, ())
    assert [one.rank for one in found.stragglers] == ["rank 17"]
    (wait,) = found.waits
    assert (wait.rank, wait.ranks.text, wait.seconds, wait.basis) == (
        "rank 17", "ranks 0–16 and 18–63", 291, "heuristic",
    )  # fmt: skip
    assert (found.compile.waited_seconds, found.compile.waited_basis) == (291, "heuristic")
    (difference,) = found.caches.differences
    assert difference.seconds == 291
    assert [side.value for side in difference.sides] == ["False", "True"]


def test_the_same_key_in_another_folder():
    found = story(**slow_rank(4, 2, differs=False))
    assert found.stragglers[0].why == (
        "its FX graph cache missed where others hit (its keys are the same: the graphs were "
        "not in the cache)"
    )


@pytest.mark.parametrize("ranks", [1, 2, 512])
def test_it_scales(ranks):
    found = story(**slow_rank(ranks, ranks - 1))
    assert len(found.ranks) == len(found.timeline.lanes) == ranks
    assert found.compile.ranks == ranks
    assert sum(len(lane.spans) for lane in found.timeline.lanes) < 15_000
    assert sum(found.compile.phases.values()) == pytest.approx(found.compile.rank_seconds)


def test_a_failure_comes_first():
    failed = compiled(
        3, 5, 1, "2/0", outcome="failed", fail_type="Unsupported", co_name="clipped",
        fail_user_file="/u/train.py", fail_user_line=50,
    )  # fmt: skip
    found = story(compiles=[*(compiled(rank, 0, 5) for rank in range(4)), failed])
    assert found.sentence.endswith("Rank 3 failed to compile clipped() (train.py:50): Unsupported.")
    assert found.failures[0].everywhere is False


def test_a_failure_of_an_earlier_start_is_told():
    jobs = [{"pass": "logs.2", "job": 1, "attempt": 1}, {"pass": "logs", "job": 1, "attempt": 2}]
    before = {**compiled(0, 0, 1, outcome="failed", fail_type="Unsupported"), "pass": "logs.2"}
    found = story(jobs=jobs, compiles=[before, compiled(0, 100, 5)])
    assert found.sentence == (
        "5.00 s of compilation (start 2 of 2). In start 1, rank 0 failed to compile forward() "
        "(net.py:7): Unsupported."
    )
    assert found.headline == "5.00 s of compilation (start 2 of 2)"
    assert found.sentence == " ".join((f"{found.headline}.", *found.remarks))
    assert [(one.attempt, one.shown) for one in found.attempts] == [(1, False), (2, True)]
    assert [one.attempt for one in found.failures] == [1]


def test_recompiles_that_cost_most_are_named_with_what_changed():
    again = [compiled(0, 10 * n, 5, f"0/{n}") for n in range(1, 4)]
    guards = [
        {
            "rank": 0, "compile_key": key(0, f"0/{n}"), "compile_id": f"0/{n}", "order": 0,
            "co_name": "forward", "co_filename": "/u/net.py", "co_firstlineno": 7,
            "guard": f"k == {n}", "kind": "value", "source_name": "k", "old": str(n - 1),
            "new": str(n), "origin": "structured",
        }
        for n in range(1, 4)
    ]  # fmt: skip
    found = story(compiles=[compiled(0, 0, 5), *again], recompiles=[*guards, *guards])
    assert found.sentence.endswith("forward() (net.py:7), 3 recompiles: k changed.")
    (chain,) = found.recompiles
    assert [(link.old, link.new, link.seconds) for link in chain.links] == [
        ("0", "1", 5), ("1", "2", 5), ("2", "3", 5),
    ]  # fmt: skip


def test_ranks_that_went_the_same_way_share_a_chain():
    def guard(rank, new):
        return {
            "rank": rank, "compile_key": key(rank, "0/1"), "compile_id": "0/1", "order": 0,
            "co_name": "forward", "co_filename": "/u/net.py", "co_firstlineno": 7, "guard": "g",
            "kind": "size", "source_name": "x", "old": "8", "new": new, "origin": "structured",
        }  # fmt: skip

    compiles = [compiled(rank, 10 * n, 1, f"0/{n}") for rank in range(4) for n in (0, 1)]
    found = story(compiles=compiles, recompiles=[guard(r, "9" if r < 3 else "7") for r in range(4)])
    assert {chain.ranks.text for chain in found.recompiles} == {"ranks 0–2", "rank 3"}


def test_the_lowest_rank_stands_for_a_chain_in_whatever_order_files_were_read():
    def guard(rank):
        return {
            "rank": rank, "compile_key": key(rank, "0/1"), "compile_id": "0/1", "order": 0,
            "co_name": "forward", "co_filename": "/u/net.py", "co_firstlineno": 7, "guard": "g",
            "kind": "size", "source_name": "x", "old": "8", "new": "9", "origin": "structured",
        }  # fmt: skip

    compiles = [compiled(rank, 10 * n, 1 + rank, f"0/{n}") for rank in range(3) for n in (0, 1)]
    for ranks in ((0, 1, 2), (2, 1, 0)):
        (chain,) = story(compiles=compiles, recompiles=[guard(rank) for rank in ranks]).recompiles
        assert [link.seconds for link in chain.links] == [1]


def test_breaks_are_counted_over_ranks():
    def broken(rank, line=3):
        return {
            "rank": rank, "compile_key": key(rank), "user_file": "/u/net.py", "user_line": line,
            "gb_type": "call", "user_function": "forward",
        }  # fmt: skip

    compiles = [compiled(rank, 0, 1) for rank in range(3)]
    rows = [broken(0), broken(0), broken(1), broken(2), broken(1, line=9)]
    first, second = story(compiles=compiles, graph_breaks=rows).breaks
    assert (first.times, first.ranks.text, first.everywhere) == (3, "all 3 ranks", True)
    assert (second.line, second.ranks.text, second.everywhere) == (9, "rank 1", False)


def test_what_is_not_recorded_is_said():
    found = story(compiles=[compiled(0, 0, None, outcome="unfinished"), compiled(1, 0, None)])
    assert found.compile.seconds is None
    assert found.compile.waited_seconds is None
    assert found.sentence == "Compilation on 2 ranks; how long was not recorded."
    assert any("never ended" in note for note in found.notes)
    assert any("not recorded" in note for note in found.notes)
    assert found.ranks[0].graph_breaks is None
    assert found.late is None


def test_text_logs_alone_still_tell_of_breaks():
    rows = [{"rank": None, "compile_key": "p:12:0:0/0", "user_file": "/u/net.py", "user_line": 3}]
    found = story(graph_breaks=rows)
    assert found.sentence == "No compile was recorded."
    assert found.breaks[0].ranks.text == "process 12"
    assert any("no structured log" in note for note in found.notes)


def test_a_clock_that_is_far_off_is_said():
    found = story(compiles=[compiled(0, 0, 5), compiled(1, 2, 5), compiled(2, 7200, 5)])
    assert any(note.startswith("rank 2 compiled 7,193 s apart") for note in found.notes)


@pytest.mark.parametrize(
    ("ranks", "told", "said"),
    [
        ((0, 5), 8, "logs of 2 of the job's 8 ranks:"),
        ((0, 5), None, "logs of 2 of at least 6 ranks that the job had:"),
        ((0, 1), 2, None),
        ((0, 1), None, None),
    ],
)
def test_ranks_without_a_log_are_counted(ranks, told, said):
    compiles = [compiled(rank, 0, 5) for rank in ranks]
    found = story(compiles=compiles, jobs=[{"job": 1, "attempt": 1, "world_size": told}])
    notes = [note for note in found.notes if "logs of" in note]
    assert [said in note for note in notes] == [True] * (said is not None)


def test_a_process_without_a_rank_may_be_the_one_that_is_missing():
    nameless = {**compiled(0, 0, 5), "rank": None, "compile_key": "p:9:0:0/0"}
    found = story(compiles=[compiled(1, 0, 5), nameless], jobs=[{"job": 1, "attempt": 1}])
    assert not any("logs of" in note for note in found.notes)
    assert "1 process logged no rank: shown by process id." in found.notes


def test_one_host_has_one_clock():
    compiles = [compiled(0, 0, 5), compiled(1, 2, 5)]
    hosts = [{"rank": rank, "pid": 1, "host": "node1"} for rank in (0, 1)]
    assert not any("clock" in note for note in story(compiles=compiles, inputs=hosts).notes)
    hosts[1]["host"] = "node2"
    assert any("2 hosts" in note for note in story(compiles=compiles, inputs=hosts).notes)


def test_a_measured_run_has_no_story():
    assert story("cold", compiles=[{**compiled(0, 0, 5), "pass": "cold"}]) is None


def test_moments_count_from_the_first_compile():
    found = story(compiles=[compiled(0, 30, 5), compiled(1, 32, 5)])
    assert (found.compile.first_at_s, found.compile.last_at_s) == (0, 7)
    assert found.timeline.lanes[1].spans[0] == (2.0, 5.0, 0)
    assert found.attempt.began_at == "2023-11-14T22:13:50+00:00"
    assert ZERO == 1_700_000_000 * S
