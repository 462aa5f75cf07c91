"""Small traces in the layout of torch's C++ exporter, written by hand after recorded ones."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto import read_stream
from traceview.parse.merge import gathered

BASE_US = 4404778133716.275


def event(name, cat, ts, dur, tid=100, **args):
    """One complete event; ``ts`` in µs after the trace's begin."""
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": round(BASE_US + ts, 3),
        "dur": dur, "args": args,
    }  # fmt: skip


def kernel(name, ts, dur, correlation, stream=7, cat="kernel", **args):
    more = {"device": 0, "stream": stream, "correlation": correlation, **args}
    made = event(name, cat, ts, dur, tid=stream, **more)
    return {**made, "pid": 0}


def launch(ts, dur, correlation, name="cudaLaunchKernel", tid=100, cat="cuda_runtime"):
    return event(name, cat, ts, dur, tid=tid, cbid=211, correlation=correlation)


def cpp_layout(events):
    """Bytes as the C++ exporter of torch 2.13 writes them."""
    parts = []
    for each in events:
        text = json.dumps(each, indent=2).replace("\n", "\n  ")
        parts.append("  " + text)
    body = ",\n".join(parts)
    head = '{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "GPU"}],\n'
    tail = '\n  ],\n  "traceName": "trace.json"\n}\n'
    return (head + '  "traceEvents": [\n' + body + tail).encode()


def read(path: Path, data: bytes | None = None, stance="compiled"):
    """(tables, damage as kind → times) of the trace at ``path``, written there first if given."""
    if data is not None:
        path.write_bytes(data)
    damage = Damage()
    with opened(path) as stream:
        tables = gathered(read_stream(stream, "trace", damage, stance=stance))
    del tables["traces"]
    found = damage.frame("logs")
    return tables, dict(zip(found["kind"], found["times"], strict=True))


def gpu_step():
    """One step: an eager matmul, a compiled region with a Triton kernel, a replay, a backward."""
    graph = "## Call CompiledFxGraph fabc ##"
    replay = "## Call CompiledFxGraph fgraph ##"
    return [
        event("traceview step 40", "user_annotation", 0, 100),
        event("traceview region 0", "user_annotation", 1, 60, **{"External id": 1}),
        event("aten::linear", "cpu_op", 2, 10, **{"External id": 2}),
        event("aten::addmm", "cpu_op", 3, 8, **{"External id": 3, "Input Dims": [[4, 8], []]}),
        launch(5, 2, 11, name="cuLaunchKernelEx", cat="cuda_driver"),
        kernel("nvjet_tst_128x64", 10, 5, 11, **{"External id": 3}),
        event("TorchDynamo Cache Lookup", "cpu_op", 13, 1),
        event("Torch-Compiled Region: 0/0", "cpu_op", 15, 20),
        event("CompiledFunction", "cpu_op", 16, 18, **{"Sequence number": 9, "Fwd thread id": 0}),
        event(graph, "user_annotation", 17, 16),
        event("triton_poi_fused_add_0", "cpu_op", 18, 6, stream=0, kernel_file="/c/x.py"),
        launch(20, 2, 12, name="cuLaunchKernel", cat="cuda_driver"),
        kernel("triton_poi_fused_add_0", 23, 4, 12),
        event("TorchDynamo Cache Lookup", "cpu_op", 38, 2),
        event("Torch-Compiled Region: 1/0", "cpu_op", 40, 20),
        event(replay, "user_annotation", 41, 18),
        launch(45, 3, 13, name="cudaGraphLaunch"),
        kernel("triton_red_fused_sum_0", 50, 3, 13),
        kernel("cutlass_80_tensorop_gemm", 55, 3, 13),
        event(
            "autograd::engine::evaluate_function: CompiledFunctionBackward", "cpu_op", 65, 20,
            tid=200, **{"Sequence number": 9, "Fwd thread id": 1},
        ),
        event("## Call CompiledFxGraph fback ##", "user_annotation", 66, 15, tid=200),
        launch(70, 2, 14, name="cuLaunchKernel", tid=200, cat="cuda_driver"),
        kernel("triton_per_fused_mean_1", 75, 5, 14),
        launch(90, 1, 15, name="cudaMemcpyAsync"),
        kernel("Memcpy DtoH (Device -> Pinned)", 92, 1, 15, cat="gpu_memcpy", bytes=4),
        launch(93, 6, 16, name="cudaStreamSynchronize"),
    ]  # fmt: skip


def column(frame: pl.DataFrame, key: str, value: str) -> dict:
    """name → value of two columns."""
    return dict(zip(frame[key], frame[value], strict=True))
