"""Phrases about the explanation: its effects, groups, limits and joins, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceview.diagnosis.explanation import Ceiling, FusionNote, KernelLimit, MatchGroup
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

HOW = {
    "line": "source line",
    "forward": "line of the forward operator",
    "operator": "operator's name",
    "provenance": "compiler's provenance log",
    "comment": "comment in the generated code",
    "name": "kernel's name",
    "order": "order and name within the graph",
}
KINDS = {
    "fused": "generated kernels",
    "library": "library kernels",
    "same": "unchanged, outside graphs",
    "eager_only": "eager only",
    "compiled_only": "compiled only",
}
BOUNDS = {
    "memory": "memory",
    "compute": "compute",
    "overhead": "overhead: too short to reach either",
    "neither": "neither: below half of both",
}
SOURCES = {
    "generated_code": "generated code",
    "input_dims": "recorded input shapes",
    "copy": "size of the copy",
    "graph_metadata": "shapes in the graph",
    "num_bytes_accessed": "Inductor's own estimate",
    "user_declared": "declared by the user",
}
PARTS = {
    "cache_lookup": "cache look-up: guards of the entries",
    "pregraph_bytecode": "bytecode before the graph",
    "runtime_wrappers": "AOTAutograd's runtime wrappers",
    "generated_wrapper": "generated wrapper code",
    "compiled_region": "inside the compiled region",
    "cudagraph_replay": "cudagraph replay",
}
NOTES = {
    "fused": "fused",
    "refused": "not fused",
    "epilogue_fused": "epilogue fused into a matrix product",
    "epilogue_apart": "epilogue left apart",
    "epilogue_not_tried": "epilogue fusion not tried",
    "prologue_fused": "prologue fused into a matrix product",
    "prologue_apart": "prologue left apart",
    "prologue_not_tried": "prologue fusion not tried",
    "hint": "hint",
    "fallback": "fallback to eager's kernel",
}
CEILINGS = {
    "copy": "copy",
    "l2_copy": "copy within L2",
    "launch": "launch",
    "kernel_gap": "gap between kernels",
    "page_fault": "first touch of a page",
}
_LANES = {"host": "host thread"}
_STREAM = re.compile(r"stream (\d{1,9})")


def _word(known: dict[str, str], name: str | None) -> str:
    """The word for ``name``; an unknown one without its underscores."""
    if name is None:
        return fmt.MISSING
    return known.get(name, name.replace("_", " "))


def how(name: str | None) -> str:
    """What a join rests on: ``source line``."""
    return _word(HOW, name)


def kind(name: str | None) -> str:
    """What a group is made of: ``generated kernels``."""
    return _word(KINDS, name)


def bound(name: str | None) -> str:
    """What limits a kernel; ``not known`` where bytes and operations are not."""
    return "not known" if name is None else _word(BOUNDS, name)


def source(name: str | None) -> str:
    """Where bytes or operations come from: ``generated code``."""
    return _word(SOURCES, name)


def part(name: str) -> str:
    """A part of the way into the generated code."""
    return _word(PARTS, name)


def by_outcome(notes: Sequence[FusionNote]) -> tuple[list[FusionNote], list[FusionNote]]:
    """Notes on what was fused, and on what was not, in their order."""
    fused = [found for found in notes if is_fused(found)]
    return fused, [found for found in notes if not is_fused(found)]


def is_fused(row: FusionNote) -> bool:
    """Whether a note is about something that was fused, an epilogue or prologue included."""
    return row.kind == "fused" or row.kind.endswith("_fused")


def saved(row: FusionNote) -> str:
    """What fusing saves or would save a call: ``5.34 GiB saved per call``; "" if not known."""
    if row.bytes_saved is None:
        return ""
    done = "saved" if is_fused(row) else "that fusing would save"
    return f"{fmt.size(row.bytes_saved)} {done} per call"


def note(name: str) -> str:
    """A kind of note about fusion."""
    return _word(NOTES, name)


def lane(name: str) -> str:
    """A lane of a step's timeline: ``host thread``, ``device, stream 7``."""
    match = _STREAM.fullmatch(name)
    return f"device, stream {match.group(1)}" if match else _word(_LANES, name)


def ceiling(row: Ceiling) -> str:
    """``copy 4,010 GB/s``, ``matmul bfloat16 712 TFLOP/s``."""
    return one_line(f"{ceiling_title(row)} {fmt.rate(row.value, row.unit)}", 80)


def ceiling_title(row: Ceiling) -> str:
    """``copy``, ``matmul bfloat16``."""
    dtype = f" {row.dtype}" if row.dtype else ""
    return _word(CEILINGS, row.kind) + dtype


def ceiling_name(name: str | None) -> str:
    """The ceiling that decides a kernel's limit: ``copy``, ``matmul bfloat16``."""
    if name is None:
        return "–"
    return _word(CEILINGS, name)


def side(group: MatchGroup, stance: str) -> str:
    """One side of a group: ``35 kernels, 0.362 ms``; ``nothing`` where there is none."""
    eager = stance == "eager"
    count = group.eager_kernels if eager else group.compiled_kernels
    ms = group.eager_ms if eager else group.compiled_ms
    if not count and not ms:
        return f"nothing in {stance}"
    noun = "kernel" if group.clock == "device" else "operator"
    said = fmt.count(count)
    return f"{said} {noun if said == '1' else noun + 's'}, {fmt.milliseconds(ms)}"


def group(row: MatchGroup) -> str:
    """``35 kernels, 0.362 ms → 1 kernel, 0.042 ms``."""
    return f"{side(row, 'eager')} → {side(row, 'compiled')}"


def operators(ops: Sequence[str], most: int = 12) -> str:
    """``sigmoid + tanh + mul``, without the namespace that all of them share."""
    said = " + ".join(names.operator(op) for op in ops[:most])
    return f"{said} and {len(ops) - most} more" if len(ops) > most else said


def computes(row: MatchGroup) -> str:
    """The operators of a group; where none are known, its kernels."""
    found = dict.fromkeys(names.kernel(kernel.name) for kernel in row.kernels)
    return operators(row.ops) or some(list(found), 4) or "operators not recorded"


def some(names_: Sequence[str], most: int) -> str:
    """``a, b and 3 more``."""
    said = ", ".join(one_line(name, 100) for name in names_[:most])
    return f"{said} and {len(names_) - most} more" if len(names_) > most else said


def bytes_of(row: KernelLimit) -> str:
    """The least bytes of one execution, or that they are not known."""
    return "not known" if row.bytes is None else fmt.size(row.bytes)
