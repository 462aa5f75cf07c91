"""Rules about several ranks, on hand-made rows."""

import json

import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
FILE = "/u/train.py"
CODE = {"co_name": "forward", "co_filename": "/u/net.py", "co_firstlineno": 10}
ENTRY = "/lib/python3/site-packages/torch/_dynamo/eval_frame.py"
DDP = "/lib/python3/site-packages/torch/nn/parallel/distributed.py"
MAIN = {"file": FILE, "line": 30, "function": "main"}
NET = {"file": "/u/net.py", "line": 10, "function": "forward"}


def stack(*files):
    inner = [{"file": file, "line": 1, "function": "forward"} for file in files]
    return json.dumps([MAIN, *inner, NET])


def compiled(rank, id_="0/0", **more):
    return {
        "rank": rank, "pid": rank, "epoch": 0, "compile_key": f"cold:{rank}:0:{id_}",
        "compile_id": id_, "is_forward": True, "outcome": "ok", **CODE, "started_us": 0.0,
        "duration_us": 3e6, "stack": stack(ENTRY, DDP), **more,
    }  # fmt: skip


def called(rank, **more):
    return {
        "rank": rank, "pid": rank, "region_id": 0, "call_file": FILE, "call_line": 20,
        "call_function": "main", "target_file": "/u/net.py", "target_line": 10, **more,
    }  # fmt: skip


def found(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])
    assert unchecked == ()
    return findings


# -- dd-ddp-splits -------------------------------------------------------------------------------


def pieces(count, rank=0, attempt=0, size=1 << 20):
    return [
        {
            "rank": rank, "compile_key": f"cold:{rank}:0:0/0", "compile_id": "0/0", "bucket": n,
            "attempt": attempt, "op_count": 4, "parameters": 2, "parameter_bytes": size,
        }
        for n in range(count)
    ]  # fmt: skip


def split(make, count=9, world="1", hidden=None, account=None, **more):
    """Nine pieces whose wrappers and Python take 1.8 ms of a step of 10 ms."""
    account = account or {"overhead_runtime_wrappers": 1.5, "overhead_compiled_region": 0.3}
    tables = {
        "ddp_buckets": pieces(count),
        "compiles": [compiled(0)],
        "regions": [called(0)],
        "environment": [{"rank": 0, "section": "torch", "name": "world_size", "value": world}],
        "speedups": [
            {"rank": 0, "eager_ms": 12.0, "compiled_ms": 10.0, "speedup": 1.2, "outcome": "helped"}
        ],
        "step_counts": [
            {"rank": 0, "stance": "compiled", "step_ms": 11.0, "hidden_communication_ms": hidden}
        ],
        "accounting": [
            {"rank": 0, "stance": "compiled", "category": name, "ms": ms}
            for name, ms in account.items()
        ],
        "call_path": [
            {"rank": 0, "compile_id": "0/0", "part": part, "calls": calls, "ms": ms}
            for part, calls, ms in (
                ("runtime_wrappers", 18.0, 1.6), ("compiled_region", 1.0, 0.4),
                ("cache_lookup", 1.0, 0.5),
            )
        ],
    }  # fmt: skip
    return make(**{**tables, **more})


def test_cuts_in_one_process_are_for_nothing(make):
    (finding,) = found("dd-ddp-splits", split(make))
    assert finding.severity == "warning"
    assert finding.cost.ms_per_step == pytest.approx(1.8 * 8 / 9)
    assert (finding.location.line, finding.about) == (20, {"/u/net.py:10"})
    assert "optimize_ddp = False" in finding.snippet.text


@pytest.mark.parametrize(
    ("world", "hidden", "severity"),
    [
        ("2", None, "info"),  # on a CPU nobody can see what is gained
        ("2", 0.1, "warning"),
        ("2", 1.55, "info"),
        ("2", 5.0, "info"),
        (None, None, "info"),
    ],
)
def test_what_runs_hidden_is_held_against_the_cuts(make, world, hidden, severity):
    (finding,) = found("dd-ddp-splits", split(make, world=world, hidden=hidden))
    assert finding.severity == severity
    assert finding.snippet.text == "DistributedDataParallel(model, bucket_cap_mb=25)"


def test_buckets_are_made_large_enough_for_the_model(make):
    tables = split(make, world="8", ddp_buckets=pieces(12, size=30 << 20))
    (finding,) = found("dd-ddp-splits", tables)
    assert finding.snippet.text.endswith("bucket_cap_mb=90)")


def test_on_a_gpu_only_what_the_device_waits_for_counts(make):
    account = {"idle_call_overhead": 0.5, "gemm": 8.0}
    (finding,) = found("dd-ddp-splits", split(make, account=account))
    assert finding.cost.ms_per_step == pytest.approx(0.5 * 8 / 9)


def test_without_a_profile_there_is_no_cost(make):
    (finding,) = found("dd-ddp-splits", split(make, call_path=[]))
    assert (finding.severity, finding.cost.ms_per_step) == ("info", None)


@pytest.mark.parametrize(
    ("files", "order"),
    [((ENTRY, DDP), "around"), ((DDP, ENTRY), "inside"), ((), "under")],
)
def test_the_order_that_ran_is_said(make, files, order):
    tables = split(make, compiles=[compiled(0, stack=stack(*files))])
    (finding,) = found("dd-ddp-splits", tables)
    assert f"{order} DistributedDataParallel" in finding.evidence[-1].text


def test_torchs_own_buckets_are_no_finding(make):
    assert found("dd-ddp-splits", split(make, ddp_buckets=pieces(4))) == ()


def test_only_the_last_attempt_and_the_first_rank_count(make):
    twice = [*pieces(4), *pieces(4, attempt=1), *pieces(9, rank=1)]
    assert found("dd-ddp-splits", split(make, ddp_buckets=twice)) == ()


# -- dd-rank-skew --------------------------------------------------------------------------------


def wait(rank, waiting, at, seconds, id_="0/1", **more):
    return {
        "rank": rank, "waiting_rank": waiting, "compile_key": f"cold:{rank}:0:{id_}",
        "compile_id": id_, "is_forward": True, "step": int(at), "started_us": at * 1e6,
        "compile_ms": seconds * 1e3, "wait_ms": seconds * 1e3, "found_in_cache": False, **more,
    }  # fmt: skip


IDS = ("0/1", "0/2", "0/3")


def skewed(make, waits, ranks=(0, 1), **more):
    compiles = [compiled(rank, id_) for rank in ranks for id_ in ("0/0", *IDS)]
    return make(
        rank_waits=waits, compiles=compiles, **{"regions": [called(rank) for rank in ranks], **more}
    )


def test_compiles_in_turns(make):
    waits = [wait(0, 1, 1, 2.0), wait(1, 0, 5, 2.0), wait(1, 0, 9, 3.0, "0/2")]
    (finding,) = found("dd-rank-skew", skewed(make, waits))
    assert (finding.severity, finding.confidence) == ("warning", "measured")
    assert finding.cost.seconds == 7.0
    assert (finding.location.file, finding.location.line) == (FILE, 30)
    assert "rank 1 compiles forward() (0/2) in step 9" in finding.evidence[0].text
    assert "in different steps" in finding.title


def test_one_compile_is_information(make):
    (finding,) = found("dd-rank-skew", skewed(make, [wait(0, 1, 1, 5.0)]))
    assert finding.severity == "info"


def test_a_wait_that_a_timeout_may_end_is_a_warning(make):
    (finding,) = found("dd-rank-skew", skewed(make, [wait(0, 1, 1, 61.0)]))
    assert finding.severity == "warning"


def test_a_quarter_of_a_known_job_is_a_warning(make):
    job = [{"rank": 0, "compiled_ms": 1.0, "eager_ms": 2.0, "job_steps": 10_000, "compile_s": 5.0}]
    (finding,) = found("dd-rank-skew", skewed(make, [wait(0, 1, 1, 5.0)], speedups=job))
    assert finding.severity == "warning"


def test_less_than_a_second_is_nothing(make):
    waits = [wait(0, 1, at, 0.2, id_) for at, id_ in zip((1, 2, 3), IDS, strict=True)]
    assert found("dd-rank-skew", skewed(make, waits)) == ()


def test_time_is_counted_once_whoever_waits(make):
    waits = [wait(0, 2, 1, 4.0), wait(1, 3, 3, 4.0)]
    (finding,) = found("dd-rank-skew", skewed(make, waits, ranks=(0, 1, 2, 3)))
    assert finding.cost.seconds == 6.0


def test_a_forward_and_its_backward_are_one_compile(make):
    waits = [wait(0, 1, 1, 2.0), wait(0, 1, 3, 2.0, is_forward=False)]
    (finding,) = found("dd-rank-skew", skewed(make, waits))
    assert (finding.cost.seconds, finding.severity) == (4.0, "info")
    assert "waits for 4.00 s" in finding.evidence[0].text


def test_a_call_that_one_rank_alone_compiles_for(make):
    tables = skewed(make, [wait(0, 1, 1, 2.0)], ranks=(0,))
    (finding,) = found("dd-rank-skew", tables)
    assert finding.title.startswith("Only rank 0 compiles forward() here")
    assert "force_eager" in finding.snippet.text


def test_a_cache_that_only_one_rank_lacks(make):
    (finding,) = found("dd-rank-skew", skewed(make, [wait(1, 0, 1, 9.0, found_in_cache=True)]))
    assert "TORCHINDUCTOR_CACHE_DIR" in finding.what_to_do


@pytest.mark.parametrize(("dynamic", "mark"), [("None", True), ("False", False)])
def test_a_size_that_decides_can_be_made_symbolic_unless_the_call_forbids(make, dynamic, mark):
    changed = {
        "rank": 0, "compile_key": "cold:0:0:0/1", "compile_id": "0/1", "order": 0,
        "kind": "size", "source_name": "ids", "dim": 1, "old": "32", "new": "48", **CODE,
        "guard": "tensor 'ids' size mismatch at index 1. expected 32, actual 48",
    }  # fmt: skip
    regions = [called(rank, dynamic=dynamic) for rank in (0, 1)]
    tables = skewed(make, [wait(0, 1, 1, 2.0)], recompiles=[changed], regions=regions)
    (finding,) = found("dd-rank-skew", tables)
    assert finding.evidence[-1].text.startswith("rank 0, 0/1: tensor 'ids' size mismatch")
    assert (finding.snippet is not None) is mark


def test_a_run_of_one_rank_is_silent(make):
    assert found("dd-rank-skew", skewed(make, [], ranks=(0,))) == ()


def test_logs_alone_do_not_tell(make):
    _, unchecked = run_rules(make(compiles=[compiled(0), compiled(1)]), [RULES["dd-rank-skew"]])
    assert [rule.rule for rule in unchecked] == ["dd-rank-skew"]


# -- ap-not-in-model -----------------------------------------------------------------------------


def test_waiting_at_a_collective_is_no_python_of_the_scripts(make):
    line = {"rank": 0, "stance": "compiled", "file": FILE, "clock": "host", "count": 1.0}
    tables = make(
        accounting=[{"rank": 0, "stance": "compiled", "category": "python", "ms": 11.0}],
        account_details=[
            {**line, "line": 40, "category": "python", "what": "Python", "ms": 9.0},
            {
                **line,
                "line": 40,
                "category": "communication",
                "what": "c10d::allreduce_",
                "ms": 0.1,
            },
            {**line, "line": 41, "category": "python", "what": "Python", "ms": 2.0},
        ],
    )
    (row,) = tables["outside_work"].filter(kind="python").to_dicts()
    assert (row["ms"], row["line"]) == (2.0, 41)
