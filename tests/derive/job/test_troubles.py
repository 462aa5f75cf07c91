"""Settings that differ, failures, stragglers and late compiles."""

import json

from job_rows import ZERO, S, compiled, job, key, looked

from traceview.derive.job import job_tables


def table(name, **rows):
    return job_tables(job(**rows))[name].to_dicts()


def config(rank, section="inductor_config", **settings):
    return {"rank": rank, "pid": 1, "section": section, "settings": json.dumps(settings)}


RANKS = [compiled(rank, 0, 5) for rank in range(4)]


def configs(*rows):
    found = table("job_configs", compiles=RANKS, configs=rows)
    return [(row["name"], row["value"], row["ranks"]) for row in found]


def test_a_setting_that_one_rank_has_otherwise():
    rows = [config(rank, max_autotune=rank == 2, debug=False) for rank in range(4)]
    assert configs(*rows) == [("max_autotune", "false", "0-1,3"), ("max_autotune", "true", "2")]


def test_a_setting_that_only_some_have():
    rows = [config(0, new=1, debug=False), config(1, debug=False)]
    assert configs(*rows) == [("new", "1", "0"), ("new", None, "1")]


def test_a_rank_that_changed_a_setting_later_only_went_on_longer():
    assert configs(config(0, a=1), config(1, a=1), config(1, a=2)) == []


def test_versions_that_a_log_does_not_tell_yet_do_not_differ():
    rows = [config(0, "versions", torch="2.13"), config(0, "versions", torch="2.13", python="3.11")]
    assert configs(*rows, config(1, "versions", torch="2.13")) == []
    assert configs(*rows, config(1, "versions", torch="2.12")) == [
        ("torch", '"2.13"', "0"),
        ("torch", '"2.12"', "1"),
    ]


def test_damaged_settings_are_passed_over():
    broken = {"rank": 0, "pid": 1, "section": "inductor_config", "settings": '{"a": '}
    assert configs(broken, config(0, a=1), config(1, a=1)) == []


def failures(*rows):
    return table("job_failures", compiles=rows)


def test_failures_that_are_alike_are_one():
    def failed(rank, number):
        return compiled(
            rank, 1, 1, outcome="failed", fail_type="Unsupported",
            fail_reason=f"Data-dependent branching at 0x{number}", fail_user_file="/u/train.py",
            fail_user_line=50,
        )  # fmt: skip

    (row,) = failures(failed(0, 12), failed(3, 99), compiled(1, 0, 5))
    assert (row["ranks"], row["times"], row["fail_type"]) == ("0,3", 2, "Unsupported")
    assert (row["user_file"], row["user_line"], row["first_us"]) == ("/u/train.py", 50, ZERO + S)


def test_failures_come_before_limits_and_what_never_ended():
    rows = failures(
        compiled(0, 0, None, outcome="unfinished"),
        compiled(1, 0, 1, outcome="limit"),
        compiled(2, 0, 1, outcome="failed"),
        compiled(3, 0, 1),
    )
    assert [row["outcome"] for row in rows] == ["failed", "limit", "unfinished"]


def test_without_torchs_place_the_failure_lies_where_the_frame_was_called():
    (row,) = failures(compiled(0, 0, 1, outcome="failed", user_file="/u/run.py", user_line=3))
    assert (row["user_file"], row["user_line"]) == ("/u/run.py", 3)


def stragglers(compiles, events=()):
    return table("job_stragglers", compiles=compiles, cache_events=events)


def test_a_rank_that_missed_what_others_found():
    compiles = [compiled(rank, 0, 30 if rank == 3 else 2) for rank in range(4)]
    events = [looked(rank, "miss" if rank == 3 else "hit") for rank in range(4)]
    (row,) = stragglers(compiles, events)
    assert (row["member"], row["seconds"], row["median_seconds"]) == ("3", 30, 2)
    assert (row["part"], row["part_seconds"]) == ("cache_miss", 28)


def test_a_rank_that_compiled_more_often():
    more = [compiled(1, 10 + n, 1, f"0/{n}") for n in range(1, 6)]
    (row,) = stragglers([*RANKS, *more])
    assert (row["part"], row["part_seconds"], row["compiles"]) == ("more_compiles", 5, 6)


def test_a_rank_that_did_the_same_more_slowly():
    (row,) = stragglers([compiled(0, 0, 20), *RANKS[1:]])
    assert (row["member"], row["part"], row["part_seconds"]) == ("0", "slower", 15)


def test_small_differences_and_lone_ranks_are_no_stragglers():
    assert stragglers([compiled(0, 0, 6), *RANKS[1:]]) == []
    assert stragglers([compiled(0, 0, 0.5), compiled(1, 0, 0.1)]) == []
    assert stragglers([compiled(0, 0, 600)]) == []


def late(compiles, **more):
    return table("late_compiles", compiles=compiles, **more)


def test_late_by_steps():
    steps = [
        {"rank": 0, "pid": 1, "step": step, "started_us": ZERO + step * 10 * S} for step in range(9)
    ]
    again = [compiled(0, 25, 1, "0/1"), compiled(0, 65, 1, "0/2")]
    failed = {"rank": 0, "compile_key": key(0, "0/2"), "order": 0, "guard": "self.noise == 0.0"}
    (row,) = late([compiled(0, 0, 5), *again], steps=steps, recompiles=[failed])
    assert (row["late_by"], row["step"], row["after_step"]) == ("steps", 6, 5)
    assert (row["compile_id"], row["reason"]) == ("0/2", "self.noise == 0.0")


def test_late_by_time_is_after_the_first_quiet_of_all_ranks():
    slow = [compiled(0, 0, 5), compiled(1, 0, 60), compiled(0, 61, 1, "1/0")]
    assert late(slow) == []  # rank 0 was quiet, the job was not
    (row,) = late([*slow, compiled(0, 80, 2, "0/1")])
    assert (row["late_by"], row["after_us"], row["step"]) == ("time", ZERO + 80 * S, None)
