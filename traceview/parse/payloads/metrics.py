"""CompilationMetrics, of an envelope or of the chromium event that ends ``dynamo``, as columns.

The object repeats three configurations of some 30 KB in every compile, as JSON in strings: they
stay bytes here, and a number says whether one is the same as in the object before.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from traceview.json_errors import NOT_JSON

#: Metrics field of torch to column of table ``compiles``, and what the column holds.
COLUMNS: dict[str, tuple[str, type]] = {
    "co_name": ("co_name", str),
    "co_filename": ("co_filename", str),
    "co_firstlineno": ("co_firstlineno", int),
    "fail_type": ("fail_type", str),
    "fail_reason": ("fail_reason", str),
    "fail_user_frame_filename": ("fail_user_file", str),
    "fail_user_frame_lineno": ("fail_user_line", int),
    "restart_reasons": ("restart_reasons", list),
    "has_guarded_code": ("has_guarded_code", bool),
    "start_time_us": ("started_us", float),
    "duration_us": ("duration_us", float),
    "structured_logging_overhead_us": ("logging_us", float),
    "dynamo_cumulative_compile_time_us": ("dynamo_us", float),
    "aot_autograd_cumulative_compile_time_us": ("aot_us", float),
    "inductor_cumulative_compile_time_us": ("inductor_us", float),
    "inductor_code_gen_cumulative_compile_time_us": ("codegen_us", float),
    "triton_compile_time_us": ("triton_compile_us", float),
    "backward_cumulative_compile_time_us": ("backward_us", float),
    "compile_time_autotune_time_us": ("autotune_us", float),
    "graph_op_count": ("graph_op_count", int),
    "graph_node_count": ("graph_node_count", int),
    "graph_input_count": ("graph_input_count", int),
    "guard_count": ("guard_count", int),
    "shape_env_guard_count": ("shape_env_guard_count", int),
    "guard_latency_us": ("guard_latency_us", float),
    "cache_size": ("cache_size", int),
    "recompile_reason": ("recompile_reason", str),
    "cudagraph_skip_reason": ("cudagraph_skip_reason", str),
}
#: What older versions wrote in seconds, where the µs field is missing.
SECONDS = {
    "start_time": "started_us",
    "structured_logging_overhead_s": "logging_us",
    "entire_frame_compile_time_s": "dynamo_us",
    "inductor_compile_time_s": "inductor_us",
    "code_gen_time_s": "codegen_us",
}
#: Fields that are configurations.
SECTIONS = ("dynamo_config", "inductor_config", "functorch_config", "compiler_config")
#: Fields that are versions, and the names they get.
VERSIONS = {
    "pytorch_version": "torch",
    "python_version": "python",
    "cuda_version": "cuda",
    "triton_version": "triton",
}
NOTHING = b"null"

# A struct of just these fields; whatever else the object holds is stepped over.
_Fields = msgspec.defstruct(
    "_Fields", [(name, Any, None) for name in (*COLUMNS, *SECONDS, "is_forward")]
)
_Metrics = msgspec.defstruct(
    "_Metrics",
    [(name, msgspec.Raw, msgspec.Raw(NOTHING)) for name in (*SECTIONS, *VERSIONS)],
    bases=(_Fields,),
)
#: Of whole envelopes, by their key.
METRICS: dict[str, msgspec.json.Decoder[Any]] = {
    key: msgspec.json.Decoder(
        msgspec.defstruct("_Envelope", [("metrics", _Metrics)], rename={"metrics": key})
    )
    for key in ("compilation_metrics", "bwd_compilation_metrics")
}
_ARGUMENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    msgspec.defstruct("_Arguments", [("args", _Fields)])
)


class Metrics(msgspec.Struct, array_like=True, tag="metrics"):
    """What an envelope holds: the columns; versions by their names; of each section its number."""

    row: dict[str, Any]
    is_forward: bool
    versions: dict[str, str]
    sections: dict[str, int]


class Numbers:
    """Numbers the configurations of one log: the same one as before for what did not change."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[bytes, int]] = {}

    def of(self, section: str, raw: bytes) -> int:
        """The number of ``raw``."""
        last, number = self._last.get(section, (b"", 0))
        if last == raw:
            return number
        self._last[section] = raw, number + 1
        return number + 1


def metrics(envelope: bytes, key: str, numbers: Numbers) -> Metrics:
    """What the envelope holds; msgspec.DecodeError where it is none of that key."""
    fields = METRICS[key].decode(envelope).metrics
    sections = sections_of(fields)
    return metrics_of(fields, {name: numbers.of(name, raw) for name, raw in sections.items()})


def metrics_of(fields: msgspec.Struct, sections: dict[str, int]) -> Metrics:
    """The same of what ``METRICS`` decoded; ``sections`` are its configurations' numbers."""
    forward = getattr(fields, "is_forward", None) is not False
    return Metrics(_row(fields), forward, versions_of(fields), sections)


def dynamo_row(payload: bytes) -> dict[str, Any]:
    """The columns that the event which ends ``dynamo`` gives; msgspec.DecodeError if it can't."""
    return _row(_ARGUMENTS.decode(payload).args)


def _row(fields: msgspec.Struct) -> dict[str, Any]:
    """Columns of table ``compiles`` from metrics fields: an object's attributes.

    What is not of its column's kind is left out: logs are not to be trusted.
    """
    row: dict[str, Any] = {}
    for name, (column, kind) in COLUMNS.items():
        value = getattr(fields, name)
        if value is None:
            continue
        if kind is list:
            if isinstance(value, list):
                row[column] = [str(item) for item in value]
        elif kind is str or kind is bool:
            if isinstance(value, kind):
                row[column] = value
        elif _is_number(value) and not isinstance(value, bool):
            if kind is float:
                row[column] = float(value)
            elif abs(value) < 2**31:
                row[column] = int(value)
    for name, column in SECONDS.items():
        value = getattr(fields, name)
        if column not in row and _is_number(value):
            row[column] = value * 1e6
    return row


def _is_number(value: object) -> bool:
    """Whether it can be a time or a count: infinities, NaN and 400 digits can't."""
    return isinstance(value, int | float) and -1e18 < value < 1e18


def sections_of(fields: msgspec.Struct) -> dict[str, bytes]:
    """The configurations that there are, as JSON in bytes."""
    found = {name: bytes(getattr(fields, name)) for name in SECTIONS}
    return {name: raw for name, raw in found.items() if raw != NOTHING}


def versions_of(fields: msgspec.Struct) -> dict[str, str]:
    """The versions that there are, by the names they get."""
    found = {name: json_text(bytes(getattr(fields, field))) for field, name in VERSIONS.items()}
    known = {name: value for name, value in found.items() if value}
    # The first line of Python's version is enough; the rest is its compiler.
    if "python" in known:
        known["python"] = known["python"].split(" ", 1)[0]
    return known


def json_text(raw: bytes) -> str | None:
    """A JSON string's text; an object as it is; None for what is neither."""
    if raw[:1] == b"{":
        return raw.decode("utf-8", "replace")
    try:
        value = msgspec.json.decode(raw)
    except NOT_JSON:
        return None
    return value if isinstance(value, str) and value else None


# ``chromium_event``, without its arguments.


class Event(msgspec.Struct, array_like=True, tag="event", gc=False, omit_defaults=True):
    """Name, phase and time in µs of one event; of the end of ``dynamo`` the compile's columns."""

    name: str
    ph: str
    ts: float
    row: dict[str, Any] | None = None


class _EventFields(msgspec.Struct, gc=False):
    name: str
    ph: str
    ts: float


#: Of JSON; a tab in a payload is nothing to it.
FIELDS = msgspec.json.Decoder(_EventFields)


def event(payload: bytes) -> Event:
    """The event that ``payload`` holds; msgspec.DecodeError where it is none."""
    found = FIELDS.decode(payload)
    if found.name == "dynamo" and found.ph == "E":
        with suppress(*NOT_JSON):
            return Event(found.name, found.ph, found.ts, dynamo_row(payload))
    return Event(found.name, found.ph, found.ts)
