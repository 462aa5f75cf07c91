"""A generated module as rows of ``generated_kernels`` and ``kernel_calls``: all but the head."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceview.parse.payloads.output_code import Call, Kernel, parse_output_code

Row = dict[str, Any]
_AOT_ID = re.compile(r"^# AOT ID: \['?(?P<id>[^'\]\n]+)'?\]", re.MULTILINE)
_ID_CHARACTERS = 10_000  # the id stands at the top


class Module(msgspec.Struct, array_like=True, tag="module"):
    """What generated code tells by itself."""

    aot_id: str | None
    kernels: list[Row]
    calls: list[Row]


def module(text: str) -> Module:
    """The kernels that generated code defines or takes from a library, and their calls."""
    match = _AOT_ID.search(text, 0, _ID_CHARACTERS)
    kernels, calls = parse_output_code(text)
    return Module(
        match["id"] if match else None,
        [_kernel_row(kernel) for kernel in kernels],
        [_call_row(order, call) for order, call in enumerate(calls)],
    )


def _kernel_row(kernel: Kernel) -> Row:
    return {
        "kernel_name": kernel.name,
        "category": kernel.category,
        "kernel_path": kernel.path,
        "source_code": kernel.source,
        "fused_ops": list(kernel.ops),
        "source_nodes": list(kernel.nodes),
        "user_lines": list(kernel.lines),
        "launch_sites": kernel.launch_sites,
        "line_origin": "comment" if kernel.lines else None,
    }


def _call_row(order: int, call: Call) -> Row:
    """A C++ kernel has its nodes above its definition: those of its call, if there is one only."""
    kernel = call.kernel
    alone = kernel.launch_sites == 1 and not call.nodes
    return {
        "order": order,
        "kernel_name": kernel.name,
        "category": kernel.category,
        "handle": call.handle,
        "source_nodes": list(kernel.nodes if alone else call.nodes),
        "ops": list(kernel.ops if alone else call.ops),
        "user_lines": [],
    }
