"""Scripts with several compiled callables, and with several threads, seen live."""

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live

TWO = """
    import torch

    def first(x):
        return torch.tanh(x) * 0.5

    def second(x):
        return x @ x

    x = torch.ones(8, 8)
    f = torch.compile(first, backend="eager")
    for _ in range(400):
        f(x)
    print("first is over")
    g = torch.compile(second, backend="eager")
    for _ in range(4000):
        g(x)
    print("not here")
"""


def anchors(run):
    """Whose blocks were timed, in both stances."""
    found = {}
    for block in run.of("block"):
        found.setdefault(block["anchor_region_id"], set()).add(block["stance"])
    return found


def test_the_second_callable_is_measured_and_then_the_run_is_stopped(tmp_path):
    run = run_child(write_script(tmp_path, TWO), steps=4)
    assert run.returncode == 0, run.err
    assert run.out.split("\n")[0] == "first is over"
    assert "not here" not in run.out
    both = {"eager", "compiled"}
    assert anchors(run) == {0: both, 1: both}
    phases = [event["phase"] for event in run.of("phase")]
    assert phases.count("cold") == 2
    assert "between" in phases
    assert [(e["line"], e["reached"]) for e in run.of("compile_line")] == [(11, True), (15, True)]
    (done,) = run.of("done")
    assert (done["stopping"], done["complete"]) == (True, True)


def test_windows_and_steps_say_whose_they_are(tmp_path):
    run = run_child(write_script(tmp_path, TWO), steps=4, profile=True)
    windows = [w for w in run.of("profile") if w["purpose"] == "time" and w["file"]]
    assert {(w["anchor_region_id"], w["step_kind"]) for w in windows} == {(0, "call"), (1, "call")}
    assert all((run.raw / w["file"]).is_file() for w in windows[-2:])
    assert {e["anchor_region_id"] for e in run.of("steps")} == {0, 1}


def test_to_its_end_measures_all_and_stops_nothing(tmp_path):
    run = run_child(write_script(tmp_path, TWO), steps=4, run_to_end=True)
    assert run.out.split("\n")[:2] == ["first is over", "not here"]
    assert set(anchors(run)) == {0, 1}
    assert not run.of("compile_line")


ONE = """
    import torch

    def f(x):
        return torch.tanh(x) * 0.5

    def never():
        return torch.compile(f)

    g = torch.compile(f, backend="eager")
    x = torch.ones(8, 8)
    for _ in range(300_000):
        g(x)
    print("not here")
"""


def test_a_line_that_is_never_reached_is_waited_for_and_listed(tmp_path):
    run = run_child(write_script(tmp_path, ONE), steps=4)
    assert "not here" not in run.out
    assert [(e["line"], e["reached"]) for e in run.of("compile_line")] == [(10, True), (8, False)]


LOOP = """
    import torch

    def f(x):
        return torch.tanh(x) * 0.5

    x = torch.ones(8, 8)
    for backend in ("eager", "aot_eager"):
        g = torch.compile(f, backend=backend)
        for _ in range(400):
            g(x)
    print("the end")
"""


def test_each_backend_of_a_loop_has_steps_of_its_own(tmp_path):
    run = run_child(write_script(tmp_path, LOOP), steps=4)
    assert set(anchors(run)) == {0, 1}


PARTS = """
    import torch

    def encode(x):
        return torch.tanh(x) * 0.5

    def decode(x):
        return x @ x

    x = torch.ones(8, 8)
    f, g = (torch.compile(each, backend="eager") for each in (encode, decode))
    for _ in range(20_000):
        g(f(x))
    print("not here")
"""


def test_callables_of_one_step_are_measured_once(tmp_path):
    run = run_child(write_script(tmp_path, PARTS), steps=4)
    assert "not here" not in run.out
    assert set(anchors(run)) == {0}


THREADS = """
    import threading
    import time
    import torch

    def f(x):
        return torch.tanh(x) * 0.5

    g = torch.compile(f, backend="eager")
    x = torch.ones(8, 8)
    g(x)

    def work():
        for _ in range(1500):
            g(x)
            time.sleep(0)  # the next thread's turn

    workers = [threading.Thread(target=work) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    print("the end")
"""


def test_a_call_of_any_thread_is_a_step(tmp_path):
    run = run_child(write_script(tmp_path, THREADS), steps=20)
    assert (run.returncode, run.out.strip()) == (0, "the end"), run.err
    blocks = run.of("block")
    assert {b["stance"] for b in blocks} == {"eager", "compiled"}
    assert sum(b["other_thread_calls"] for b in blocks) > 0
    assert all(abs(b["region_calls"] - b["steps"]) <= 3 for b in blocks)
    (end,) = run.of("region_end")[-1:]
    assert end["calls"] == 1 + 3 * 1500
    assert any("several threads" in note["what"] for note in run.of("note"))
