"""What the host did in a gap of the device gives the gap its causes, cut along the host's time."""

import pytest
from step_tables import call, kernel, mark, op, overhead, step, us, window

REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph f1 ##"


def gap(*ops, calls=(), **more):
    """The device works to 100 µs and from 900; between 100 and 890 the host does ``ops``."""
    kernels = [kernel(0, 100, 0), kernel(900, 100, 890)]
    return us(window(ops, calls, kernels, **more))


def test_a_gap_is_cut_along_the_hosts_time():
    found = gap(
        op("aten::view", 50, 150), mark("traceview gc 2", 300, 100), op("aten::add", 800, 95)
    )
    assert found == {
        "gemm": 200,
        "idle_launch_bound": (200 - 100) + (890 - 800) + 10,
        "idle_gc": 100,
        "idle_python": (300 - 200) + (800 - 400),
    }


def test_short_python_belongs_to_launching():
    ops = [op("aten::view", start, 10) for start in range(100, 1000, 50)]
    assert gap(*ops) == {"gemm": 200, "idle_launch_bound": 800}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "idle_data_loading"),
        ("_compile.compile_inner (dynamo_timed)", "idle_compile"),
        ("traceview gc 0", "idle_gc"),
    ],
)
def test_a_mark_gives_its_cause_to_everything_in_it(name, cause):
    found = gap(mark(name, 200, 400), op("aten::stack", 250, 100, parent=0))
    assert found[cause] == 400


@pytest.mark.parametrize("making", ["cudagraphify.get_container", "CUDAGraphNode.record"])
def test_a_call_that_makes_a_cudagraph_is_neither_entering_nor_launching(making):
    found = gap(
        overhead(f"{REGION}0/0", 150, 700),
        overhead(GRAPH, 160, 300, parent=0),
        mark(making, 170, 100, parent=1),
        mark(f"{making} (dynamo_timed)", 180, 80, parent=2),
        op("aten::addmm", 300, 20, parent=1),
        overhead(f"{REGION}1/0", 500, 200, parent=0),  # replays: its own cost is that of entering
    )
    assert found["idle_cudagraph_recording"] == 700 - 200
    assert found["idle_call_overhead"] == 200
    assert "idle_compile" not in found


@pytest.mark.parametrize(
    ("lasts", "cause"), [(400, "idle_custom_op"), (80, "idle_launch_bound")], ids=["long", "short"]
)
def test_a_custom_operators_own_code_is_no_launching_where_it_is_long(lasts, cause):
    custom = op("bridge::limits", 150, 100 + lasts, category="user_kernel")
    found = gap(custom, op("aten::to", 150, 100, parent=0))
    assert found[cause] >= lasts
    assert ("idle_custom_op" in found) is (cause == "idle_custom_op")


@pytest.mark.parametrize(
    ("name", "waits", "found"),
    [
        ("aten::cudnn_convolution", 3, True),
        ("aten::convolution_backward", 2, True),
        ("aten::cudnn_convolution", 1, False),
        ("aten::index", 3, False),
    ],
)
def test_a_convolution_that_waits_again_and_again_searches_for_its_algorithm(name, waits, found):
    calls = [call("cudaEventSynchronize", 200 + 50 * number, 20, "sync") for number in range(waits)]
    rows = gap(op(name, 160, 500), calls=calls)
    assert rows.get("idle_search", 0) == (500 if found else 0)
    assert rows.get("idle_sync", 0) == (0 if found else 20 * waits)


def test_the_collectors_own_work_is_nobodys_time():
    tables = window(
        [mark("traceview own", 200, 400)], (), [kernel(0, 100, 0), kernel(900, 100, 890)]
    )
    rows, counts, _ = step(tables)
    assert "own" not in rows
    assert counts["step_ms"] == pytest.approx(0.6)
    assert sum(row["profiled_ms"] for row in rows.values()) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("name", "kind", "cause"),
    [
        ("cudaMalloc", "alloc", "idle_allocator"),
        ("cudaFree", "alloc", "idle_allocator"),
        ("cudaEventSynchronize", "sync", "idle_sync"),
        ("cudaLaunchKernel", "launch", "idle_launch_bound"),
    ],
)
def test_calls_have_their_causes(name, kind, cause):
    rows = gap(op("aten::empty", 150, 740), calls=[call(name, 200, 300, kind)])
    assert rows[cause] == (300 if cause != "idle_launch_bound" else 790 + 10 - 50)


def test_a_copy_from_pageable_memory_holds_the_host_one_from_pinned_memory_does_not():
    def copying(direction):
        copy = kernel(500, 50, 200, 7, f"Memcpy {direction}", "copy") | {"kind": "memcpy"}
        calls = [call("cudaMemcpyAsync", 200, 350, "copy", 7, kernels=1)]
        return us(window(
            [op("aten::copy_", 120, 760)], calls, [kernel(0, 100, 0), copy, kernel(900, 100, 890)]
        ))  # fmt: skip

    # The device waits from 100 on; the call begins at 200, and the copy at 500.
    assert copying("HtoD (Pageable -> Device)")["idle_copy_wait"] == 300
    assert copying("DtoH (Device -> Pageable)")["idle_sync"] == 300
    assert not {"idle_copy_wait", "idle_sync"} & set(copying("HtoD (Pinned -> Device)"))


def test_a_copy_to_the_host_is_not_charged_more_than_its_call_takes():
    """Before the copy, which the call makes itself, and after it the device idles in the call."""
    copy = kernel(500, 50, 200, 7, "Memcpy DtoH (Device -> Pageable)", "copy") | {"kind": "memcpy"}
    calls = [call("cudaMemcpyAsync", 200, 370, "copy", 7, kernels=1)]
    kernels = [kernel(0, 100, 0), copy, kernel(900, 100, 890)]
    found = us(window([op("aten::copy_", 120, 760)], calls, kernels))
    # 320 of its 370 µs idle; for the other 50, those of the copy, it gets launching after it.
    assert found["idle_sync"] == 320 + 50


def test_a_compiled_calls_own_work():
    found = gap(
        mark("traceview region 0", 110, 770),
        overhead("TorchDynamo Cache Lookup", 120, 80, 0),
        overhead(REGION + "0/0", 200, 600, 0),
        overhead("Pregraph bytecode", 210, 90, 2),
        {**mark(GRAPH, 310, 100, 2), "category": "overhead"},
    )
    assert found["idle_guards"] == 80
    assert found["idle_call_overhead"] == 600 - 100
    # The wrapper launches kernels; 10 µs are the launch's own.
    assert found["idle_launch_bound"] == 100 + 10


def test_python_between_the_compiled_parts_of_one_call_is_a_graph_breaks():
    region = {"region": "0"}
    found = gap(
        mark("traceview region 0", 110, 770),
        overhead("TorchDynamo Cache Lookup", 120, 10, 0),
        overhead(REGION + "0/0", 130, 600, 0),
        {**mark(GRAPH, 140, 60, 2), "category": "overhead", **region},
        op("aten::item", 220, 30, 2),
        overhead("TorchDynamo Cache Lookup", 300, 20, 2),
        overhead(REGION + "1/0", 320, 100, 2),
        {**mark(GRAPH, 330, 60, 6), "category": "overhead", **region},
    )
    assert found["idle_graph_break"] == (220 - 200) + (300 - 250)
    assert found["idle_guards"] == 30


def test_the_thread_that_launches_decides():
    """Autograd's thread works while the main thread waits in ``backward()``."""
    kernels = [kernel(0, 100, 0), kernel(900, 100, 890, 5)]
    ops = [
        op("autograd::engine::evaluate_function: MulBackward0", 200, 300, tid="9"),
        op("aten::mul", 250, 200, 0, tid="9"),
        op("autograd::engine::evaluate_function: AddBackward0", 500, 395, tid="9"),
    ]
    calls = [call("cuLaunchKernel", 890, 2, correlation=5, tid="9", kernels=1)]
    assert us(window(ops, calls, kernels)) == {
        "gemm": 200, "idle_python": 100, "idle_launch_bound": 700,
    }  # fmt: skip


def test_other_threads_that_launch_nothing_do_not_count():
    found = gap(op("aten::pin_memory", 150, 600, tid="9"), op("aten::view", 100, 30))
    assert found == {"gemm": 200, "idle_launch_bound": 10 + 30, "idle_python": 760}


def test_waiting_in_a_collective_is_communication():
    found = gap(op("c10d::allreduce_", 150, 600, category="communication"))
    assert found["idle_communication"] == 600
