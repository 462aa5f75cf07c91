"""The small parts of the collector's child half, without torch and without a script."""

import json
import linecache
import logging
import os
import sys
import threading
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from traceview.collectors.child.anchor import MAX_MOVES, Anchor
from traceview.collectors.child.config import Config
from traceview.collectors.child.frames import Frames, Sources
from traceview.collectors.child.gate import counting, region_of
from traceview.collectors.child.importhook import after_import
from traceview.collectors.child.logs import Chosen
from traceview.collectors.child.memory import Memory
from traceview.collectors.child.recorder import Recorder
from traceview.collectors.child.state import FOREVER, Control, Gate, Region


def lines(recorder):
    path = recorder.raw / f"events-{os.getpid()}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_event_is_a_whole_line_at_once(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.write("note", what="ünicode \udcff", why=object)
    (event,) = lines(recorder)
    assert event["event"] == "note"
    assert event["what"] == "ünicode \udcff"
    assert event["t"] > 1e15
    recorder.close()


def test_rows_are_batched_by_their_keys(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.row("steps", [0, 1.0], phase="cold", stance="compiled")
    recorder.row("steps", [1, 2.0], phase="cold", stance="compiled")
    recorder.row("steps", [2, 3.0], phase="block", stance="eager")
    recorder.flush(due=True)
    assert lines(recorder) == []
    recorder.flush()
    batches = [(e["phase"], e["stance"], e["rows"]) for e in lines(recorder)]
    assert batches == [
        ("cold", "compiled", [[0, 1.0], [1, 2.0]]),
        ("block", "eager", [[2, 3.0]]),
    ]
    recorder.close()


def test_a_full_disk_is_tried_once(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path)
    tries = []

    def full(fd, data):
        tries.append(data)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    recorder.write("note")
    recorder.write("note")
    assert len(tries) == 1


def test_config_ignores_unknown_keys_and_fills_in_missing_ones():
    config = Config.from_json({"run": "/r", "raw": "/r/raw", "pass": "warm", "later": 1})
    assert (config.raw, config.pass_name, config.mode, config.blocks) == (
        Path("/r/raw"), "warm", "paired", None,
    )  # fmt: skip


@pytest.fixture
def frames(tmp_path):
    torch = "/venv/lib/python3.11/site-packages/torch/__init__.py"
    return Frames(torch, str(tmp_path), str(tmp_path / "traceview-train"))


@pytest.mark.parametrize(
    ("file", "user"),
    [
        ("{root}/train.py", True),
        ("{root}/traceview-train/cache/inductor/aj/cajvrwv.py", False),
        ("{root}/cache/model.py", True),
        ("{root}/.venv/lib/python3.11/site-packages/numpy/core.py", False),
        ("/elsewhere/project/model.py", True),
        ("/venv/lib/python3.11/site-packages/transformers/models.py", False),
        ("/venv/lib/python3.11/site-packages/torch/nn/functional.py", False),
        (json.__file__, False),
        ("<frozen importlib._bootstrap>", False),
        ("<stdin>", True),
        ("<ipython-input-3-0f1e2d>", True),
        ("{root}/nb.ipynb cell 4", True),
    ],
)
def test_whose_file_it_is(frames, tmp_path, file, user):
    assert frames.is_user(file.format(root=tmp_path)) is user


def test_sources_are_copied_once_and_only_the_users(frames, tmp_path):
    recorder = Recorder(tmp_path)
    sources = Sources(tmp_path / "run", recorder, frames)
    script = tmp_path / "my script.py"
    script.write_text("x = 1\n")
    for file in (str(script), str(script), json.__file__, str(tmp_path / "gone.py"), None):
        sources.keep(file)
    (event,) = lines(recorder)
    assert (tmp_path / "run" / event["copy"]).read_text() == "x = 1\n"
    assert event["copy"].endswith("-my script.py")
    recorder.close()


def test_a_launcher_in_site_packages_is_not_the_script(monkeypatch):
    """``-m IPython`` runs the user's cells; ``-m package.train`` is the user's own package."""
    root = "/venv/lib/python3.11/site-packages/IPython"
    shell = f"{root}/core/interactiveshell.py"
    main = types.ModuleType("__main__")  # IPython's own for the user's names
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not Frames(None, root).is_user(shell)
    main.__file__ = f"{root}/__main__.py"
    assert Frames(None, root).is_user(shell)


def test_the_code_of_a_cell_is_copied_from_where_python_keeps_it(frames, tmp_path, monkeypatch):
    for name in (
        "<ipython-input-3-0f1e2d>",
        f"{tmp_path}/nb.ipynb cell 1",
        f"{tmp_path}/nb.ipynb cell 2",
    ):
        monkeypatch.setitem(linecache.cache, name, (6, None, ["x = 1\n", f"# {name}\n"], name))
    recorder = Recorder(tmp_path)
    sources = Sources(tmp_path / "run", recorder, frames)
    sources.keep("<ipython-input-3-0f1e2d>")
    sources.keep(f"{tmp_path}/nb.ipynb cell 2")
    copies = {event["file"]: event["copy"] for event in lines(recorder)}
    assert len(copies) == 3
    assert copies["<ipython-input-3-0f1e2d>"].endswith("--ipython-input-3-0f1e2d-")
    for file, copy in copies.items():
        assert (tmp_path / "run" / copy).read_text() == f"x = 1\n# {file}\n"
    recorder.close()


def test_the_import_hook_acts_after_the_module_and_leaves_no_trace(tmp_path, monkeypatch):
    (tmp_path / "late_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    seen = []
    after_import("late_module", lambda module: seen.append(module.value))
    import late_module

    assert seen == [1]
    assert sys.meta_path == before
    assert type(late_module.__spec__.loader).__name__ == "SourceFileLoader"
    assert late_module.__loader__ is late_module.__spec__.loader
    del sys.modules["late_module"]


def test_the_import_hook_stays_while_the_import_fails(tmp_path, monkeypatch):
    module = tmp_path / "shaky_module.py"
    module.write_text("raise RuntimeError('first time')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    after_import("shaky_module", seen.append)
    with pytest.raises(RuntimeError, match="first time"):
        __import__("shaky_module")
    assert seen == []
    module.write_text("value = 'second time, and longer'\n")
    assert __import__("shaky_module").value in seen[0].value
    del sys.modules["shaky_module"]


class Listener:
    def __init__(self):
        self.heard = []

    def before(self, gate, args, kwargs):
        self.heard.append("before")
        gate.region.grant(FOREVER)


def gated(control, target):
    gate = Gate(Region(0), target, lambda *args: "original")
    control.add(gate.region)
    control.admit(gate)
    return gate, counting(gate, control, listener := Listener()), listener


def test_the_gate_counts_and_reports_only_when_its_grant_is_used_up():
    control = Control()
    gate, call, listener = gated(control, lambda x: x + 1)
    assert [call(1), call(2), call(3)] == [2, 3, 4]
    assert listener.heard == ["before"]
    assert (gate.region.outermost, gate.region.nested) == (3, 0)
    control.point(eager=True)
    assert call(1) == "original"


def test_a_failing_call_is_found_in_the_traceback_and_leaves_the_depth_at_zero():
    control = Control()
    error = ValueError("from the user")

    def fail():
        raise error

    gate, call, listener = gated(control, fail)
    with pytest.raises(ValueError, match="from the user") as caught:
        call()
    assert listener.heard == ["before"]
    assert region_of(error.__traceback__) is gate.region
    assert control.depth == 0
    assert len([e for e in caught.traceback if e.path.name == "gate.py"]) == 1


def test_a_call_inside_another_is_nested():
    control = Control()
    control.watching = False
    inner_gate, inner, _ = gated(control, lambda: "inner")
    outer_gate, outer, _ = gated(control, lambda: inner())
    assert outer() == "inner"
    assert (outer_gate.region.outermost, inner_gate.region.nested) == (1, 1)
    assert inner_gate.region.outermost == 0


def test_the_one_region_of_a_flat_script_is_only_counted_down_between_two_edges():
    control = Control()
    error = ValueError("from the user")

    def picky(x):
        if x < 0:
            raise error
        return x

    gate, call, listener = gated(control, picky)
    region = gate.region
    region.first_called = True
    control.grant(3)
    assert (region.passes_left, region.left, region.remaining) == (3, 0, 3)
    control.depth = 1  # not looked at
    assert [call(1), call(2)] == [1, 2]
    with pytest.raises(ValueError, match="from the user"):
        call(-1)
    control.depth = 0
    assert listener.heard == []
    assert region_of(error.__traceback__) is region
    assert (region.outermost, region.nested, region.remaining) == (3, 0, 0)
    call(4)
    assert listener.heard == ["before"]
    assert region.calls == 4


def test_a_second_region_or_a_nested_call_ends_the_counting_down():
    control = Control()
    control.watching = False
    gate, call, _ = gated(control, lambda: None)
    gate.region.first_called = True
    control.grant(10)
    call()
    gated(control, lambda: None)
    assert (gate.region.passes_left, gate.region.remaining, gate.region.outermost) == (0, 9, 1)

    control = Control()
    control.watching = False
    gate, call, _ = gated(control, lambda: None)
    gate.region.first_called = True
    control.depth = 1
    call()
    control.depth = 0
    control.grant(10)
    assert (gate.region.passes_left, gate.region.remaining, gate.region.nested) == (0, 10, 1)


class Optimizer:
    pass


def test_the_first_region_called_is_the_anchor_until_an_optimizer_steps_twice():
    control = Control()
    region = Region(0)
    control.regions.append(region)
    anchor, optimizer = Anchor(control), Optimizer()
    assert anchor.called(region)
    verdicts = []
    for _ in range(2):
        region.counted += 1
        verdicts.append(anchor.stepped(optimizer))
    assert verdicts == [False, True]
    assert (anchor.kind, anchor.region) == ("optimizer", None)
    assert anchor.is_optimizer(optimizer)


def test_an_optimizer_of_steps_without_compiled_calls_is_no_anchor():
    control = Control()
    control.regions.append(Region(0))
    anchor, optimizer = Anchor(control), Optimizer()
    assert not any(anchor.stepped(optimizer) for _ in range(100))


def test_each_fold_has_an_optimizer_of_its_own_and_all_their_steps_count():
    control = Control()
    region = Region(0)
    control.regions.append(region)
    anchor, moves, counted = Anchor(control), 0, []
    anchor.called(region)
    for _ in range(MAX_MOVES + 3):
        optimizer, own = Optimizer(), 0
        for _ in range(10):
            region.counted += 1
            if anchor.is_optimizer(optimizer):
                own += 1
            elif anchor.stepped(optimizer):
                moves += 1
            else:
                own += anchor.inherits(optimizer)
        counted.append(own)
        del optimizer
    assert moves == MAX_MOVES
    assert counted[MAX_MOVES:] == [8, 10, 10]


def test_another_region_takes_over_after_fifty_calls_without_the_anchor():
    control = Control()
    first, second = Region(0, held=1), Region(1, held=1)
    control.regions += [first, second]
    anchor = Anchor(control)
    first.counted += 1
    anchor.called(first)
    verdicts = []
    for _ in range(60):
        second.counted += 1
        verdicts.append(anchor.called(second))
    assert verdicts.index(True) == 49
    assert anchor.region is second


def made_anew(control, before):
    """A region that the same line makes of the same function after ``before``."""
    region = Region(len(control.regions))
    region.made_after = before, before.outermost
    control.regions.append(region)
    return region


def test_what_a_line_compiles_anew_goes_on_in_the_anchors_place():
    control = Control()
    first = Region(0)
    control.regions.append(first)
    anchor = Anchor(control)
    first.counted += 1
    assert anchor.called(first)
    first.grant(9)
    for _ in range(4):
        first.counted += 1
        first.left -= 1
    unused = made_anew(control, first)
    second = made_anew(control, unused)
    second.counted += 1
    assert not anchor.called(second)
    assert (anchor.region, anchor.region_id) == (second, 0)
    assert second.remaining == 4, "the fifth of nine calls has begun"
    assert second.outermost == 1


def test_blocks_of_one_line_are_one_step_together():
    control = Control()
    blocks = [Region(0)]
    control.regions.append(blocks[0])
    anchor, ends = Anchor(control), []
    for turn in range(5):
        for number in range(3):
            if not turn and number:  # compiled at its first call
                blocks.append(made_anew(control, blocks[-1]))
            blocks[number].counted += 1
            anchor.called(blocks[number])
        ends.append(anchor.region)
    assert ends == [blocks[-1]] * 5


def test_after_a_complete_plan_the_next_region_that_is_not_settled_is_the_anchor():
    control = Control()
    first, part, later = (Region(number, group=number, held=1) for number in range(3))
    control.regions += [first, part, later]
    anchor = Anchor(control)
    assert anchor.called(first)
    anchor.begin()
    for region in (first, part):
        region.counted += 100
    anchor.conclude(steps=100)
    assert control.settled == {0, 1}
    assert control.waiting, "later was made and can be called"
    assert not anchor.called(part)
    later.counted += 1
    assert anchor.called(later)
    assert (anchor.region, anchor.over) == (later, False)
    assert not any(anchor.called(first) for _ in range(200)), "it has been measured"


def test_what_is_called_in_few_of_the_steps_is_measured_by_itself():
    control = Control()
    train, evaluate = (Region(number, group=number, held=1) for number in range(2))
    control.regions += [train, evaluate]
    anchor, optimizer = Anchor(control), Optimizer()
    for _ in range(3):
        train.counted += 1
        anchor.stepped(optimizer)
    anchor.begin()
    train.counted += 100
    evaluate.counted += 20
    anchor.conclude(steps=100)
    assert control.settled == {0}
    train.counted += 1
    assert not anchor.stepped(optimizer), "its plan is complete"
    assert anchor.called(evaluate)


def test_another_region_takes_over_at_once_where_the_anchor_is_gone():
    control = Control()
    first, second = (Region(number, group=number, held=1) for number in range(2))
    control.regions += [first, second]
    anchor = Anchor(control)
    assert anchor.called(first)
    first.counted += 30
    first.collected()
    assert anchor.called(second)


def test_two_regions_by_turns_keep_the_anchor():
    control = Control()
    first, second = Region(0, held=1), Region(1, held=1)
    control.regions += [first, second]
    anchor = Anchor(control)
    moved = 0
    for _ in range(300):
        for region in (first, second):
            region.counted += 1
            moved += anchor.called(region)
    assert moved == 1
    assert anchor.region is first


def quiet():
    control = Control()
    control.watching = False
    return control


def in_thread(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_call_of_another_thread_is_outermost_and_nested_within_its_own():
    control = quiet()
    _, inner, _ = gated(control, lambda: None)
    seen = []

    def target():
        inner()
        seen.append(set(control.inside))

    gate, call, _ = gated(control, target)
    call()
    in_thread(call)
    call()
    assert control.threaded
    assert (gate.region.outermost, gate.region.nested) == (3, 0)
    assert control.regions[0].nested == 3
    assert [len(inside) for inside in seen] == [0, 1, 1]
    assert not control.inside


def test_a_script_that_calls_from_one_thread_of_its_own_has_one():
    control = quiet()
    gate, call, _ = gated(control, lambda: None)
    in_thread(lambda: [call() for _ in range(3)])
    assert not control.threaded
    assert gate.region.calls == 3


def test_a_switch_waits_for_calls_of_other_threads():
    control = quiet()
    entered, leave = threading.Event(), threading.Event()

    def target():
        entered.set()
        leave.wait(5)

    _, call, _ = gated(control, target)
    leave.set()
    call()
    in_thread(call)
    leave.clear()
    entered.clear()
    thread = threading.Thread(target=call)
    thread.start()
    entered.wait(5)
    assert len(control.inside) == 1
    threading.Timer(0.05, leave.set).start()
    assert control.calm()
    assert not control.inside
    thread.join()


def test_while_one_thread_is_profiled_the_others_make_no_steps():
    control = quiet()
    gate, call, _ = gated(control, lambda: None)
    call()
    in_thread(call)
    control.only = threading.get_ident()
    in_thread(call)
    assert (gate.region.outermost, gate.region.nested) == (2, 1)
    call()
    assert gate.region.outermost == 3


REGISTRY = SimpleNamespace(
    log_alias_to_log_qnames={"dynamo": ["torch._dynamo"], "inductor": ["torch._inductor"]},
    artifact_names={"graph_breaks", "fusion"},
    off_by_default_artifact_names={"fusion"},
    get_log_qnames=lambda: {"torch._dynamo", "torch._inductor"},
)


@pytest.mark.parametrize(
    ("user_logs", "name", "level", "passes"),
    [
        ([], "torch._dynamo.x.__graph_breaks", logging.DEBUG, False),
        (["graph_breaks"], "torch._dynamo.x.__graph_breaks", logging.DEBUG, True),
        (["+dynamo"], "torch._dynamo.x.__graph_breaks", logging.DEBUG, True),
        (["+inductor"], "torch._inductor.x.__fusion", logging.DEBUG, False),
        (["fusion"], "torch._inductor.x.__fusion", logging.DEBUG, True),
        ([], "torch._dynamo.convert_frame", logging.WARNING, True),
        (["-dynamo"], "torch._dynamo.convert_frame", logging.WARNING, False),
        (["dynamo"], "torch._dynamo.convert_frame", logging.INFO, True),
        (["dynamo"], "torch._inductor.graph", logging.INFO, False),
        (["all"], "torch._inductor.graph", logging.INFO, True),
    ],
)
def test_stderr_gets_what_the_user_asked_for(user_logs, name, level, passes):
    record = logging.LogRecord(name, level, "f.py", 1, "text", (), None)
    assert Chosen(user_logs, REGISTRY).filter(record) is passes


def test_nothing_here_needs_more_than_the_standard_library():
    child = Path(sys.modules[Config.__module__].__file__).parent
    for file in child.rglob("*.py"):
        text = file.read_text()
        assert "import traceview" not in text
        assert "from traceview" not in text
        if not file.name.startswith("form"):  # read when the script has ended, with torch there
            assert "\nimport torch" not in text


def test_our_copies_are_no_part_of_a_peak():
    """The allocator counts all that the process holds, the calls that are kept among it."""
    held = SimpleNamespace(
        reset_peak_memory_stats=lambda: None,
        memory_allocated=lambda: 700,
        max_memory_allocated=lambda: 900,
        max_memory_reserved=lambda: 1000,
        current_device=lambda: 0,
    )
    written = []
    recorder = SimpleNamespace(write=lambda event, **keys: written.append(keys))
    memory = Memory(SimpleNamespace(cuda=held), recorder)
    memory.device, memory.ours = True, 200
    memory.open()
    memory.close("eager", 0)
    (row,) = written
    assert (row["start_bytes"], row["peak_bytes"], memory.peaks) == (500, 700, {"eager": 700})
