"""Kernels: a generated module as rows of ``generated_kernels`` and ``kernel_calls`` (but the head),
and ``inductor_provenance_tracking_kernel_stack_traces``: ``{"kernel:handle": [user stack, …]}``.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceview.torchtext.frames import is_user_frame, parse_traceback, torch_roots
from traceview.torchtext.output_code import parse_output_code
from traceview.torchtext.remembered import remembered

_AOT_ID = re.compile(r"^# AOT ID: \['?(?P<id>[^'\]\n]+)'?\]", re.MULTILINE)
_ID_CHARACTERS = 10_000  # the id stands at the top


class KernelRow(msgspec.Struct, array_like=True, gc=False):
    """Columns of ``generated_kernels``."""

    kernel_name: str
    category: str | None
    kernel_path: str | None
    source_code: str | None
    fused_ops: list[str]
    source_nodes: list[str]
    user_lines: list[str]
    launch_sites: int
    line_origin: str | None


class CallRow(msgspec.Struct, array_like=True, gc=False):
    """Columns of ``kernel_calls``."""

    order: int
    kernel_name: str
    category: str | None
    handle: int | None
    source_nodes: list[str]
    ops: list[str]
    user_lines: list[str]


class Module(msgspec.Struct, array_like=True, tag="module"):
    """What generated code alone shows."""

    aot_id: str | None
    kernels: list[KernelRow]
    calls: list[CallRow]


def module(text: str) -> Module:
    """The kernels that generated code defines or takes from a library, and their calls."""
    match = _AOT_ID.search(text, 0, _ID_CHARACTERS)
    kernels, calls = parse_output_code(text)
    kernel_rows = [
        KernelRow(
            kernel.name,
            kernel.category,
            kernel.path,
            kernel.source,
            list(kernel.ops),
            list(kernel.nodes),
            list(kernel.lines),
            kernel.launch_sites,
            "comment" if kernel.lines else None,
        )
        for kernel in kernels
    ]
    call_rows = []
    for order, call in enumerate(calls):
        kernel = call.kernel
        # A C++ kernel has its nodes above its definition: those of its call, if there is one only.
        named = kernel if kernel.launch_sites == 1 and not call.nodes else call
        nodes, ops = list(named.nodes), list(named.ops)
        row = CallRow(order, kernel.name, kernel.category, call.handle, nodes, ops, [])
        call_rows.append(row)
    return Module(match["id"] if match else None, kernel_rows, call_rows)


class Traces(msgspec.Struct, array_like=True, tag="traces"):
    """The user's lines of kernels by name, and the innermost ones of calls by handle."""

    by_kernel: dict[str, list[str]] = {}
    by_handle: dict[str, list[str]] = {}


def traces(stacks_of: dict[str, Any]) -> Traces:
    """The user's lines that the decoded payload quotes."""
    kernels: dict[str, dict[str, None]] = {}
    found = Traces()
    for handle, stacks in stacks_of.items():
        lines = kernels.setdefault(handle.rpartition(":")[0] or handle, {})
        innermost: dict[str, None] = {}
        for stack in stacks if isinstance(stacks, list) else ():
            quoted = user_lines(str(stack))
            lines.update(dict.fromkeys(quoted))
            innermost.update(dict.fromkeys(quoted[:1]))
        found.by_handle[handle] = list(innermost)
    found.by_kernel.update((name, list(lines)) for name, lines in kernels.items())
    return found


@remembered(most=2_000)  # many kernels of a model come from one line of it
def user_lines(stack: str) -> tuple[str, ...]:
    """``file:line`` of the user's own frames in a quoted stack, innermost first."""
    frames = parse_traceback(stack)
    roots = torch_roots(frame.file for frame in frames)
    return tuple(f"{f.file}:{f.line}" for f in reversed(frames) if is_user_frame(f, roots))
