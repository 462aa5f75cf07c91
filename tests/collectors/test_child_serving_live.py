"""A process that serves: every call with its time, its sizes, its way and what it compiled."""

import pytest
from child_runs import run_child, write_script

from traceview.rollout import read_served

pytestmark = pytest.mark.live
SERVICE = """
    import torch

    torch._dynamo.config.recompile_limit = 4

    @torch.compile(backend="eager", dynamic=False)
    def double(ids, mask=None, *, scale=1):
        return ids * 2 if mask is None else ids * mask * scale

    def answer(length):
        return double(torch.ones(1, length), mask=torch.ones(1, length))

    for length in WARM:
        answer(length)
    for number in range(30):
        answer(REQUESTS[number % len(REQUESTS)])
    print("served")
"""


def serve(tmp_path, warm, requests, **config):
    text = SERVICE.replace("WARM", repr(warm)).replace("REQUESTS", repr(requests))
    limits = {"serve_calls": 1000, "serve_seconds": 60.0} | config
    done = run_child(write_script(tmp_path, text), mode="compiled", **limits)
    assert done.returncode == 0, done.err
    return done, read_served(done.raw, "cold", "exit")


def test_a_warm_up_is_told_from_the_traffic(tmp_path):
    done, recorded = serve(tmp_path, (8, 16), (8, 16, 8))
    assert done.out == "served\n"
    assert not done.of("block")
    (called,) = recorded.called
    assert (called.name, len(called.calls), called.warmup(None)) == ("double", 32, 2)
    assert [bool(call.compiles) for call in called.calls] == [True] * 2 + [False] * 30
    sizes = [dict(called.shapes[call.shape]) for call in called.calls[:3]]
    assert sizes == [{"ids": (1, n), "mask": (1, n)} for n in (8, 16, 8)]
    assert all(call.ms > 0 for call in called.calls)
    end = recorded.process
    assert (end.why, end.calls, end.stance, end.graphs) == ("end", 32, "default", 2)
    assert (end.limit_hits, end.settings["recompile_limit"]) == ((), 4)
    assert end.peak_bytes > 1 << 20


def test_limits_of_the_service_and_of_the_recording(tmp_path):
    done, recorded = serve(tmp_path, (8,), (9, 10, 11, 12, 13, 14), serve_calls=20)
    assert done.out == ""  # stopped at the 21st call
    (called,) = recorded.called
    assert [call.index for call in called.calls] == list(range(20))
    assert sum(1 for call in called.calls if call.compiles) == 4
    (hit,) = recorded.process.limit_hits
    assert "config.recompile_limit (4) function: 'double'" in hit
    assert recorded.process.why == "calls"
    assert [event["stopping"] for event in done.of("done")] == [True]
