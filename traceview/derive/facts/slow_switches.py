"""Table ``slow_switches``: switches of torch's that are on while the steps run and slow them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import polars as pl

from traceview.derive.facts.rows import Row, called_in, first, first_rank, frame, rows, step_ms
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks
from traceview.torchtext.fx import read_graph

#: Instructions that all CPUs of 64 bits have, or had before 2011.
_OLD_INSTRUCTIONS = ("COMPATIBLE", "SSE2", "SSE3", "SSSE3", "SSE4_1", "SSE4_2", "SSE41")
#: Values with which a switch of table ``environment`` slows the steps; None: any.
_SLOW = {
    "autograd.detect_anomaly": ("True",),
    "inductor.nan_asserts": ("True",),
    "autograd.profiler": ("True",),
    "deterministic_algorithms": ("True",),
    "cudnn.enabled": ("False",),
    "CUDA_LAUNCH_BLOCKING": ("1",),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": None,
    "MKL_CBWR": _OLD_INSTRUCTIONS,
    "MKL_ENABLE_INSTRUCTIONS": _OLD_INSTRUCTIONS,
    "ONEDNN_MAX_CPU_ISA": _OLD_INSTRUCTIONS,
    "ATEN_CPU_CAPABILITY": ("default",),
}
#: Variables that keep a CPU's wider vectors from what is done in libraries, or (none) by ATen.
NARROW_VECTORS: dict[str, tuple[str, ...]] = {
    "MKL_CBWR": ("gemm",),
    "MKL_ENABLE_INSTRUCTIONS": ("gemm",),
    "ONEDNN_MAX_CPU_ISA": ("gemm", "convolution"),
    "ATEN_CPU_CAPABILITY": (),
}
_NO_CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"
_OF_DEVICE = ("CUDA_LAUNCH_BLOCKING", _NO_CACHING, "cudnn.enabled")
#: Operators that run because of a switch, and no other way: writes by index that sort it first,
#: convolutions and recurrent cells that torch has next to cuDNN's.
_KERNELS = {
    "deterministic_algorithms": r"^aten::_index_put_impl_$",
    "cudnn.enabled": r"^aten::_?(slow_conv|conv_depthwise|thnn_)",
}
FUSED_ATTENTION = "fused_attention"
#: In ``setting_sites``, a context that leaves no fused backend of attention.
SEPARATE = "sdpa_kernel"
#: Attention as separate operators, in eager steps; compiled ones have it as parts of a graph.
_SEPARATE = "aten::_scaled_dot_product_attention_math"
_BACKENDS = ("cuda.flash_sdp", "cuda.mem_efficient_sdp", "cuda.cudnn_sdp")
#: Dtype, as a trace writes it → the backends that take it; on a CPU the first one takes them all.
_TAKE = {"float": _BACKENDS[1:2], "c10::BFloat16": _BACKENDS, "c10::Half": _BACKENDS}
#: A fused backend that saves less of attention's time than this is none that slows the step.
_LEAST_GAIN = 0.05
#: Of libraries that do less of a step it is not worth speaking.
_LEAST_WORK = 0.05
#: Products of attention are batched; others at its line are of something else there.
_BATCHED = frozenset({"aten.bmm", "aten.baddbmm"})
_LIBRARY = ("gemm", "convolution", "attention", "communication")
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
        if (name in _OF_DEVICE and not on_device) or (name in NARROW_VECTORS and on_device):
            continue
        if (theirs := NARROW_VECTORS.get(name)) and not _has_work(tables, theirs):
            continue
        site = first(tables, "setting_sites", name=name) or {}
        more = checked.get(name, {})
        if name == _NO_CACHING:  # the driver's calls for memory
            calls = frame(tables, "kernel_launches", stance="compiled").drop_nulls("step")
            steps, calls = calls["step"].n_unique(), calls.filter(pl.col("kind") == "alloc")
            if not calls.is_empty():
                ms = _as_timed(tables, calls, steps)
                more = {"driver_calls": calls.height / steps, "ms": ms}
        elif name in _KERNELS:  # those that ran because of the switch
            ran = frame(tables, "kernel_groups", stance="compiled")
            if not ran.is_empty():
                more = _taken(
                    ran.filter(pl.coalesce("cpu_op", "name").str.contains(_KERNELS[name]))
                )
        if name == "cudnn.enabled" and "ms" in more and not more["ms"]:
            continue  # no step has work for cuDNN
        place = {"file": site.get("file"), "line": site.get("line")}
        found.append(
            {**{key: row[key] for key in ("pass", "rank", "name", "value")}, **place, **more}
        )
    if known and (attention := _separate_attention(tables, known, on_device)):
        found.append({**head, **attention})
    return from_rows("slow_switches", found)


def _has_work(tables: Tables, categories: Sequence[str]) -> bool:
    """Whether a compiled step spends a notable part of its time in libraries of these kinds."""
    ran = frame(tables, "kernel_groups", stance="compiled")
    theirs = ran.filter(pl.col("category").is_in(categories))
    return float(theirs["ms"].sum()) > _LEAST_WORK * float(ran["ms"].sum())


def _separate_attention(tables: Tables, known: Mapping[str, Row], on_device: bool) -> Row | None:
    """Columns of attention that runs as separate operators because its backends are off.

    Older recordings have no such settings: there lines that switch them off must do. None where
    there is no such attention, or it has another reason.
    """
    ops = frame(tables, "cpu_ops", name=_SEPARATE).filter(pl.col("step").is_not_null())
    lines = frame(tables, "line_ops", name=_SEPARATE).drop_nulls(["file", "line"])
    types = ops["input_types"].drop_nulls().to_list()
    dtype = next(iter(json.loads(types[0])), None) if types else None
    needed: Sequence[str] = _TAKE.get(str(dtype), ())
    if needed and not on_device:
        needed = _BACKENDS[:1]
    if not needed:
        return None
    sites: dict[str, Row] = {}
    for row in first_rank(rows(tables, "setting_sites")):
        sites.setdefault(row["name"], row)
    if any(name in known for name in _BACKENDS):
        off = all(name not in known or known[name]["value"] == "False" for name in needed)
    else:
        off = all(name in sites for name in needed)
    names = (*(needed if off else ()), SEPARATE)
    site = next((sites[name] for name in names if name in sites), None)
    if not off and site is None:
        return None
    faster = [
        row["share"]
        for row in first_rank(rows(tables, "shape_gains", kind="attention"))
        if row["way"].endswith(" attention")
    ]
    if faster and max(faster) < _LEAST_GAIN:
        return None
    at = lines.select(pl.concat_str("file", pl.lit(":"), "line").alias("at"))["at"]
    user_lines = at.unique(maintain_order=True).to_list()
    place = {"file": site["file"], "line": site["line"]} if site else {}
    graphs = (read_graph(row["text"] or "") for row in rows(tables, "graphs", kind="post_grad"))
    nodes = (node for graph in graphs for node in graph.operations)
    products = {node.user_line for node in nodes if node.op in _BATCHED}
    # Those that Inductor's patterns for attention make have no line.
    batched = pl.coalesce("cpu_op", "name").str.replace("::", ".", literal=True).is_in(_BATCHED)
    known_at = pl.concat_str("file", pl.lit(":"), "line").is_in(user_lines)
    theirs = pl.col("line").is_null() & pl.lit(products <= {None, *user_lines})
    ran = frame(tables, "matched_kernels", stance="compiled").filter(
        pl.when(batched).then(known_at | theirs).otherwise(known_at),
        ~pl.col("category").is_in(_LIBRARY) | batched,
    )
    found = {"name": FUSED_ATTENTION, "value": "False", "user_lines": user_lines}
    return {**found, **({} if ran.is_empty() else _taken(ran)), **place}


def _taken(ran: pl.DataFrame) -> Row:
    """``kernels`` per step and their ``ms``, of the lowest rank."""
    mine = ran.filter(pl.col("rank").eq_missing(ran["rank"].min()))
    return {"kernels": float(mine["count"].sum()), "ms": float(mine["ms"].sum())}


def _checks(tables: Tables, of: str, names: Sequence[str], counted: str) -> Row:
    """``checks`` in a compiled step, and their ``ms``; empty where there are none.

    Checks are the operators ``names`` that are called right in ``of``, counted by one of them.
    """
    ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("step").is_not_null())
    checks = called_in(ops, of).filter(pl.col("name").is_in(names))
    count = checks.filter(pl.col("name") == counted).height
    steps = ops["step"].n_unique()
    return {"checks": count / steps, "ms": _as_timed(tables, checks, steps)} if count else {}


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
