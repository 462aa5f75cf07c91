"""Autotuning as chromium events tell it: the winner, and how many were tried.

E args of ``OP_template_autotuning``: ``autotune_shape``, ``autotune_dtypes``, ``autotune_strides``,
``autotune_choices_stats`` (a JSON string: num_choices, best_kernel, best_time in ms, …). The whole
ranking goes to stderr alone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured.state import Compile, Reader

_SUFFIX = "_template_autotuning"


def autotuned(
    reader: Reader, record: Record, compile: Compile | None, args: dict[str, Any], name: str
) -> None:
    """One row of ``autotune_choices`` for each choice that the event names."""
    process = reader.process
    stats = _stats(args.get("autotune_choices_stats"))
    table = {
        "table_index": process.autotune_tables,
        "op": name.removesuffix(_SUFFIX),
        "shapes": _text(args.get("autotune_shape")),
        "dtypes": _text(args.get("autotune_dtypes")),
        "strides": _text(args.get("autotune_strides")),
    }
    process.autotune_tables += 1
    best = stats.get("best_kernel")
    if isinstance(best, str):
        details = stats.get("best_kernel_desc")
        row = {"choice": best, "is_best": True, "time_ms": _number(stats.get("best_time"))}
        row |= {"backend": backend_of(best), "details": _text(details)}
        process.add("autotune_choices", record, compile, table | row)
    triton = stats.get("best_triton_kernel")
    if isinstance(triton, str) and triton != best:
        row = {"choice": triton, "is_best": False, "backend": "triton"}
        row |= {"time_ms": _number(stats.get("best_triton_time"))}
        row |= {"details": _text(stats.get("best_triton_kernel_desc"))}
        process.add("autotune_choices", record, compile, table | row)


def backend_of(choice: str) -> str:
    """Whose kernel a choice is, by torch's way of naming it."""
    if choice.startswith(("triton_", "triton::")):
        return "triton"
    if choice.startswith(("cpp_", "CppTemplate", "CppGemm")):
        return "cpp"
    return "other" if choice.startswith(("cutlass", "cutedsl", "ck", "rocm")) else "aten"


def _stats(value: object) -> dict[str, Any]:
    if not isinstance(value, str):
        return value if isinstance(value, dict) else {}
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else (None if value is None else str(value))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value == value else None
