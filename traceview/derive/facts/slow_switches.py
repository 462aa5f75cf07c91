"""Table ``slow_switches``: switches of torch's that are on while the steps run and slow them."""

from __future__ import annotations

import polars as pl

from traceview.derive.facts.rows import Row, first, first_rank, frame, rows, step_ms
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

#: Values with which a switch of table ``environment`` slows the steps; None: any.
_SLOW = {
    "autograd.detect_anomaly": ("True",),
    "autograd.profiler": ("True",),
    "deterministic_algorithms": ("True",),
    "cudnn.enabled": ("False",),
    "CUDA_LAUNCH_BLOCKING": ("1",),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": None,
}
_OF_DEVICE = ("CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING", "cudnn.enabled")
#: Operators that run because of a switch, and no other way: writes by index that sort it first,
#: convolutions and recurrent cells that torch has next to cuDNN's.
_KERNELS = {
    "deterministic_algorithms": r"^aten::_index_put_impl_$",
    "cudnn.enabled": r"^aten::_?(slow_conv|conv_depthwise|thnn_)",
}
_ANOMALY = "autograd.detect_anomaly"
#: What anomaly detection does with every gradient (``validate_outputs`` in torch/csrc/autograd/
#: engine.cpp); nothing else in a backward calls the second one.
_CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::item")


def slow_switches(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_switches``; None where no setting was recorded."""
    if not tables.has("environment"):
        return None
    known = {row["name"]: row for row in first_rank(rows(tables, "environment"))}
    checked = _checks(tables)
    if checked:  # it was not recorded, or is on in a part of the step alone
        head = {name: next(iter(known.values()), {}).get(name) for name in ("pass", "rank")}
        known[_ANOMALY] = {**head, "name": _ANOMALY, "value": "True"}
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
        more = checked if name == _ANOMALY else _kernels(tables, name)
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


def _checks(tables: Tables) -> Row:
    """``checks`` of gradients in a compiled step, and their ``ms``; empty where there are none."""
    ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("step").is_not_null())
    backward = ops.filter(pl.col("name").str.starts_with(marks.AUTOGRAD)).select(parent_id="op_id")
    checks = ops.filter(pl.col("name").is_in(_CHECKS)).join(
        backward.unique(), on="parent_id", how="semi"
    )
    count = checks.filter(pl.col("name") == _CHECKS[1]).height
    steps = ops["step"].n_unique()
    counts, timed = first(tables, "step_counts", stance="compiled"), step_ms(tables, "compiled")
    if not count:
        return {}
    profiled = (counts["step_ms"] or 0.0) if counts else 0.0
    share = float(checks["duration_ns"].sum()) / 1e6 / steps / profiled if profiled else None
    known = share is not None and timed is not None
    return {"checks": count / steps, "ms": share * timed if known else None}  # type: ignore[operator]
