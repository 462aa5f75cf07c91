"""Table ``slow_switches``: switches of torch's that are on while the steps run and slow them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.facts.rows import Row, called_in, first, first_rank, frame, rows, step_ms
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

#: Values with which a switch of table ``environment`` slows the steps; None: any.
_SLOW = {
    "autograd.detect_anomaly": ("True",),
    "inductor.nan_asserts": ("True",),
    "autograd.profiler": ("True",),
    "deterministic_algorithms": ("True",),
    "cudnn.enabled": ("False",),
    "CUDA_LAUNCH_BLOCKING": ("1",),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": None,
}
_NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"
_OF_DEVICE = ("CUDA_LAUNCH_BLOCKING", _NO_CACHING, "cudnn.enabled")
#: Operators that run because of a switch, and no other way: writes by index that sort it first,
#: convolutions and recurrent cells that torch has next to cuDNN's.
_KERNELS = {
    "deterministic_algorithms": r"^aten::_index_put_impl_$",
    "cudnn.enabled": r"^aten::_?(slow_conv|conv_depthwise|thnn_)",
}
_ANOMALY, _ASSERTS = "autograd.detect_anomaly", "inductor.nan_asserts"
#: A switch → where it calls operators, which, and one of them that nothing else there calls:
#: anomaly detection with every gradient (``validate_outputs`` in torch/csrc/autograd/engine.cpp),
#: Inductor with every input of a graph (``codegen_input_nan_asserts`` in its codegen/wrapper.py).
_CHECKS = {
    _ANOMALY: (
        marks.AUTOGRAD,
        ("aten::isnan", "aten::_is_any_true", "aten::item"),
        "aten::_is_any_true",
    ),
    _ASSERTS: (
        marks.GRAPH,
        ("aten::isnan", "aten::isinf", "aten::any", "aten::item"),
        "aten::isnan",
    ),
}


def slow_switches(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_switches``; None where no setting was recorded."""
    if not tables.has("environment"):
        return None
    known = {row["name"]: row for row in first_rank(rows(tables, "environment"))}
    checked = {name: _checks(tables, *how) for name, how in _CHECKS.items()}
    head = {name: next(iter(known.values()), {}).get(name) for name in ("pass", "rank")}
    for name, found_of in checked.items():
        if found_of:  # it was not recorded, or is on in a part of the step alone
            known[name] = {**head, "name": name, "value": "True"}
    run = first(tables, "runs")
    on_device = run is not None and run["device_name"] not in (None, "cpu")
    found: list[Row] = []
    for name, slow in _SLOW.items():
        row = known.get(name)
        if row is None or (slow is not None and row["value"] not in slow):
            continue
        if name in _OF_DEVICE and not on_device:
            continue
        site = first(tables, "setting_sites", name=name) or {}
        more = checked[name] if name in checked else _kernels(tables, name)
        if name == _NO_CACHING:
            more = _driver_calls(tables)
        if name == "cudnn.enabled" and "ms" in more and not more["ms"]:
            continue  # no step has work for cuDNN
        place = {"file": site.get("file"), "line": site.get("line")}
        found.append(
            {**{key: row[key] for key in ("pass", "rank", "name", "value")}, **place, **more}
        )
    return from_rows("slow_switches", found)


def _kernels(tables: Tables, name: str) -> Row:
    """``kernels`` per compiled step that ran because of a switch, and their ``ms``.

    Empty where the switch has none, or no profile shows them.
    """
    ran = frame(tables, "kernel_groups", stance="compiled", clock="device")
    if name not in _KERNELS or ran.is_empty():
        return {}
    ran = ran.filter(pl.col("rank").eq_missing(ran["rank"].min()))
    ran = ran.filter(pl.col("cpu_op").str.contains(_KERNELS[name]))
    return {"kernels": float(ran["count"].sum()), "ms": float(ran["ms"].sum())}


def _checks(tables: Tables, of: str, names: Sequence[str], counted: str) -> Row:
    """``checks`` in a compiled step, and their ``ms``; empty where there are none.

    Checks are the operators ``names`` that are called right in ``of``, counted by one of them.
    """
    ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("step").is_not_null())
    checks = called_in(ops, of).filter(pl.col("name").is_in(names))
    count = checks.filter(pl.col("name") == counted).height
    steps = ops["step"].n_unique()
    return {"checks": count / steps, "ms": _as_timed(tables, checks, steps)} if count else {}


def _driver_calls(tables: Tables) -> Row:
    """``driver_calls`` for memory in a compiled step, and their ``ms``; empty without a profile."""
    calls = frame(tables, "kernel_launches", stance="compiled").drop_nulls("step")
    steps, calls = calls["step"].n_unique(), calls.filter(pl.col("kind") == "alloc")
    if calls.is_empty():
        return {}
    return {"driver_calls": calls.height / steps, "ms": _as_timed(tables, calls, steps)}


def _as_timed(tables: Tables, events: pl.DataFrame, steps: int) -> float | None:
    """Milliseconds of these events per step: their part of the profiled step, on the timed one."""
    counts, timed = first(tables, "step_counts", stance="compiled"), step_ms(tables, "compiled")
    profiled = counts["step_ms"] if counts else None
    if counts is None:  # of a GPU that the profile shows no work of
        windows = rows(tables, "profile_windows", stance="compiled", purpose="time", steps=steps)
        profiled = windows[-1]["host_ms"] / steps if windows else None
    if not profiled or timed is None:
        return None
    share = float(events["duration_ns"].sum()) / 1e6 / steps / float(profiled)
    return share * timed
