"""What of a trace is read, and what is said of the rest: names, categories, steps."""

import pytest
from kineto_traces import cpp_layout, event, gpu_step, kernel, launch, read

from traceview.cli.postmortem import read_paths
from traceview.derive import derive
from traceview.derive.windows import windows
from traceview.diagnosis import diagnose
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto import read_stream
from traceview.parse.merge import gathered
from traceview.reading import open_tables
from traceview.reading.executors import Serial
from traceview.reports import html, markdown
from traceview.tables import Tables
from traceview.torchtext.marks import UNNAMED


def tables_of(tmp_path, events):
    return read(tmp_path / "t.json", cpp_layout(events))


def window_of(tmp_path, events):
    """The only window of a trace as a post-mortem reads it."""
    path, damage = tmp_path / "t.json", Damage()
    path.write_bytes(cpp_layout(events))
    with opened(path) as stream:
        found = gathered(read_stream(stream, "t.json", damage))
    (window,) = windows(Tables({**found, "unreadable": damage.frame("logs")}))
    return window


def test_an_event_without_a_name_keeps_its_place(tmp_path):
    """``record_function("")``, and a key "name" in which a byte was flipped."""
    inner = event("aten::add", "cpu_op", 2, 1)
    nameless = {k: v for k, v in event("x", "cpu_op", 1, 3).items() if k != "name"}
    around = event("", "user_annotation", 0, 9)
    found, damage = tables_of(tmp_path, [around, nameless, inner, kernel("", 5, 1, 3)])
    assert damage == {}
    ops = found["cpu_ops"].select("name", "depth").rows()
    assert ops == [(UNNAMED, 0), (UNNAMED, 1), ("aten::add", 2)]
    assert found["kernels"].select("name", "category").rows() == [(UNNAMED, "other")]


def test_categories_of_older_torch_are_those_of_today(tmp_path):
    today = [
        event("ProfilerStep#3", "user_annotation", 0, 50),
        event("aten::mm", "cpu_op", 1, 9),
        launch(2, 1, 7),
        kernel("gemm", 5, 5, 7),
        kernel("Memcpy", 20, 1, 8, cat="gpu_memcpy"),
        kernel("Memset", 30, 1, 9, cat="gpu_memset"),
    ]
    older = {
        "user_annotation": "Operator",
        "cpu_op": "Operator",
        "cuda_runtime": "Runtime",
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
    }
    new, _ = tables_of(tmp_path, today)
    old, damage = tables_of(tmp_path, [{**e, "cat": older[e["cat"]]} for e in today])
    assert damage == {}
    for name in ("kernels", "kernel_launches", "cpu_ops"):
        assert old[name].equals(new[name]), name


def test_unknown_categories_are_counted_and_known_ones_passed_over(tmp_path):
    others = [
        event("matmul", "mtia_ccp_events", 1, 5),
        event("relu", "mtia_ccp_events", 7, 5),
        event("odd", None, 1, 1),
        event("python", "python_function", 1, 5),
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    ]
    found, damage = tables_of(tmp_path, [*gpu_step(), *others])
    assert damage == {"unknown_category": 2, "no_category": 1}
    assert found["kernels"].height == 6


def test_the_host_is_no_device_whose_work_is_not_read(tmp_path):
    step = [event("ProfilerStep#1", "user_annotation", 0, 20), event("aten::mm", "cpu_op", 1, 9)]
    window = window_of(tmp_path, [*step, event("matmul", "mtia_ccp_events", 5, 9)])
    assert window.lost
    assert any("mtia_ccp_events: 1" in what for what, _ in window.notes)
    window = window_of(tmp_path, step)
    assert not window.lost
    assert not window.on_device


def steps(*, last_works, mark="ProfilerStep#{}"):
    """Three steps; the profiler stops at the beginning of the last one, unless it works."""
    made = []
    for number, start in enumerate((0, 20, 40)):
        works = number < 2 or last_works
        made.append(event(mark.format(number), "user_annotation", start, 10 if works else 0.1))
        made += [event("aten::mm", "cpu_op", start + 1, 5)] if works else []
    return made


@pytest.mark.parametrize("last_works", [False, True])
def test_a_step_that_the_profiler_stopped_in_is_none(tmp_path, last_works):
    found, _ = tables_of(tmp_path, steps(last_works=last_works))
    ops = found["cpu_ops"].filter(name="aten::mm")
    assert ops["step"].to_list() == [0, 1, 2][: 2 + last_works]
    marked = found["cpu_ops"].filter(kind="user_annotation")["step"].to_list()
    assert marked == [0, 1, 2 if last_works else None]


def test_our_own_empty_step_is_one(tmp_path):
    found, _ = tables_of(tmp_path, steps(last_works=False, mark="traceview step {}"))
    assert found["cpu_ops"].filter(kind="user_annotation")["step"].to_list() == [0, 1, 2]


def test_only_an_empty_step_is_no_step(tmp_path):
    window = window_of(tmp_path, steps(last_works=False)[-1:])
    assert window.steps is None
    assert any(what == "steps" for what, _ in window.notes)


def diagnosed(tmp_path, events):
    """The tables and the diagnosis of a post-mortem of one trace."""
    path = tmp_path / "logs" / "t.json"
    path.parent.mkdir()
    path.write_bytes(cpp_layout(events))
    out = tmp_path / "out"
    out.mkdir()
    run, _ = read_paths(out, [str(path.parent)], Serial(), resume=False)
    tables = derive(open_tables(run), {})
    return tables, diagnose(run, tables)


def test_without_step_marks_totals_are_shown_and_the_page_says_why(tmp_path):
    unmarked = [each for each in gpu_step() if not each["name"].startswith("traceview step")]
    _, diagnosis = diagnosed(tmp_path, unmarked)
    assert {(group.ms, group.count) for group in diagnosis.kernels} == {(None, None)}
    assert sum(group.total_count for group in diagnosis.kernels) == 6
    assert sum(group.total_ms for group in diagnosis.kernels) == pytest.approx(0.021)
    assert diagnosis.explanation.matching.groups == ()
    page, ticket = html.render(diagnosis), markdown.render(diagnosis)
    assert "no step marks" in page
    assert "none is marked in the trace" in page
    assert "ms in the trace, without step marks" in ticket
    assert "0× · 0 ms" not in page + ticket


def test_marked_steps_are_shown_per_step(tmp_path):
    _, diagnosis = diagnosed(tmp_path, gpu_step())
    assert all(group.ms is not None for group in diagnosis.kernels)
    assert "no step marks" not in html.render(diagnosis)


def test_a_category_whose_kernels_took_no_time_has_no_part_in_it(tmp_path):
    gone = kernel("ncclDevKernel_AllReduce", 80, 0, 17)
    tables, _ = diagnosed(tmp_path, [*gpu_step(), gone, kernel("elementwise_kernel", 81, 0, 18)])
    busy = tables["accounting"].filter(kind="busy")
    assert dict(busy.select("category", "ms").iter_rows())["elementwise"] == 0.0
    rows = tables["account_details"].filter(category="elementwise")
    assert rows.select("what", "ms").rows() == [("elementwise_kernel", 0.0)]
