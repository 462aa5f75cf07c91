"""One failed guard as torch writes it in recompile reasons, taken apart.

The texts come from ``torch/_dynamo/guards.py`` (``get_guard_fail_reason_helper``) and, for tensors,
from ``torch/csrc/dynamo/guards.cpp``. One is ``COMPILE_ID: GUARD  # CODE  # FILE:LINE in FUNCTION
(HINT: …)``, from 2.12 with a ``User stack trace:`` behind it; 2.6 writes ``L['x']`` for ``x``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from traceview.compile_id import CompileId
from traceview.parse.frames import first_user_frame, parse_traceback

_ID = re.compile(r"\A[\s-]*\[?(?P<id>(?:!\d+/)?\d+/\d+(?:_\d+)?)\]?: ")
_USER_STACK = re.compile(r"^[\s-]*User stack trace:.*$", re.MULTILINE)
_COMMENT = re.compile(
    r"\s+# (?P<code>.*?)  # (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in (?P<function>[\w<>.]+)"
)
_PLAIN_COMMENT = re.compile(r"\s+# (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in (?P<function>[\w<>.]+)")
_LOCAL = re.compile(r"\bL\[\s*['\"](.*?)['\"]\s*\]")
_LIMIT = 16_000  # characters: no guard is longer, and patterns stay bounded work
_MEANING_LIMIT = 2_000
_MODULE_INT = "integer attributes of the nn.Module"

_TENSOR = re.compile(
    r"tensor '(?P<name>.*)' (?P<what>[\w ]*?)\s*mismatch(?: at index (?P<dim>\d+))?\."
)
_EXPECTED = re.compile(
    r"expected(?: [a-z_ ]*? to be)? (?:requires_grad=)?(?P<old>.+?)(?:, actual (?P<new>.+))?$", re.I
)
_TENSOR_KINDS = {
    "size": "size", "stride": "stride", "dtype": "dtype", "rank": "rank",
    "requires_grad": "requires_grad", "dispatch key set": "dispatch_keys",
    "Tensor device index": "device", "device": "device",
}  # fmt: skip
_NOT_TENSOR = re.compile(
    r"expected type of '(?P<name>.*)' to be (?P<old>.*?),?\s*'? but found (?P<new>.*)"
)
_CHECK = re.compile(
    r"___check_(?P<what>type|obj)_id\((?P<name>.+), (?P<id>\d+)\)(?:, type=(?P<type><.*>|\S+))?"
)
_LENGTH = re.compile(r"(?:len|___\w+_len)\((?P<name>.+?)\) (?:==|!=) (?P<old>\d+)")
_BACKEND = re.compile(
    r"BACKEND_MATCH.*?Cached backend: (?P<old>.*?)\. New backend: (?P<new>.*?)\. If ", re.DOTALL
)
_STATE = re.compile(
    r"(?:GLOBAL_STATE changed: (?P<name>[\w ,]*?)|___check_global_state\(\)"
    r"|___check_torch_function\w*\(.*\))\s*\Z"
)
_SIZES = re.compile(
    r"(?P<name>[^\s()<>=*+,!%/-]+)\.(?:size|stride)\(\)\[(?P<dim>\d+)\]|\.storage_offset\(\)"
)
_DEVICE = re.compile(r"str\((?P<name>.+)\.device\) == (?P<old>.+)")
_VALUE = re.compile(r"(?P<name>[^=<>!]+?) (?:==|is) (?P<old>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GuardText:
    """One failed guard; what its text does not say is None.

    ``kind`` is one of those that table ``recompiles`` declares. ``old`` is the value that the
    guard expected and ``new`` the one it met, as text. ``user_file`` may be cut off at the front:
    torch shortens it where no user stack trace follows.
    """

    guard: str
    kind: str = "other"
    source_name: str | None = None
    dim: int | None = None
    old: str | None = None
    new: str | None = None
    user_file: str | None = None
    user_line: int | None = None
    user_code: str | None = None
    failed_compile_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Meaning:
    kind: str = "other"
    source_name: str | None = None
    dim: int | None = None
    old: str | None = None
    new: str | None = None


def parse_guard(text: str) -> GuardText:
    """Read one guard failure, with or without the id of the cache entry in front; never raises."""
    text = text[:_LIMIT]
    named = _ID.match(text)
    rest = text[named.end() :] if named else text.strip().removeprefix("- ")
    at = _USER_STACK.search(rest)
    frame = first_user_frame(parse_traceback(rest[at.end() :])) if at else None
    line = rest[: at.start()] if at else rest
    comment = _COMMENT.search(line) or _PLAIN_COMMENT.search(line)
    guard = line[: comment.start()] if comment else line.split(" (HINT: ")[0]
    guard = _LOCAL.sub(r"\1", guard).strip()
    found = _meaning(guard)
    kind = "module_int" if found.kind == "value" and _MODULE_INT in line else found.kind
    quoted = comment.groupdict() if comment else {}
    compile_id = CompileId.parse(named["id"]) if named else None
    return GuardText(
        guard=guard,
        kind=kind,
        source_name=found.source_name,
        dim=found.dim,
        old=found.old,
        new=found.new,
        user_file=frame.file if frame else quoted.get("file"),
        user_line=frame.line if frame else (int(quoted["line"]) if quoted else None),
        user_code=(frame.code if frame else None) or quoted.get("code"),
        failed_compile_id=str(compile_id) if compile_id else None,
    )


def _meaning(guard: str) -> _Meaning:
    return next((found for read in _READERS if (found := read(guard[:_MEANING_LIMIT]))), _Meaning())


def _tensor(guard: str) -> _Meaning | None:
    match = _TENSOR.match(guard)
    if match is None:
        return None
    values = _EXPECTED.search(guard, match.end())
    old, new = (values["old"], values["new"]) if values else (None, None)
    kind = _TENSOR_KINDS.get(match["what"], "other")
    if kind == "requires_grad" and old in ("0", "1"):
        old, new = ("True", "False") if old == "1" else ("False", "True")
    return _Meaning(kind, match["name"], int(match["dim"]) if match["dim"] else None, old, new)


def _not_a_tensor(guard: str) -> _Meaning | None:
    match = _NOT_TENSOR.match(guard)
    return _Meaning("type_id", match["name"], None, match["old"], match["new"]) if match else None


def _backend(guard: str) -> _Meaning | None:
    if "BACKEND_MATCH" not in guard and "___lookup_backend" not in guard:
        return None
    match = _BACKEND.match(guard)
    return _Meaning("backend", None, None, *(match.group("old", "new") if match else ()))


def _state(guard: str) -> _Meaning | None:
    match = _STATE.match(guard)
    return _Meaning("global_state", (match["name"] or "").strip() or None) if match else None


def _identity(guard: str) -> _Meaning | None:
    match = _CHECK.match(guard)
    if match is None:
        return None
    if match["what"] == "type":
        return _Meaning("type_id", match["name"], None, match["type"])
    return _Meaning("obj_id", match["name"], None, f"id {match['id']}")


def _length(guard: str) -> _Meaning | None:
    match = _LENGTH.match(guard)
    return _Meaning("length", match["name"], None, match["old"]) if match else None


def _sizes(guard: str) -> _Meaning | None:
    match = _SIZES.search(guard)
    if match is None:
        return None
    return _Meaning("shape_guard", match["name"], int(match["dim"]) if match["dim"] else None)


def _device(guard: str) -> _Meaning | None:
    match = _DEVICE.match(guard)
    return _Meaning("device", match["name"], None, match["old"]) if match else None


def _value(guard: str) -> _Meaning | None:
    match = _VALUE.match(guard)
    return _Meaning("value", match["name"].strip(), None, match["old"].strip()) if match else None


_READERS: tuple[Callable[[str], _Meaning | None], ...] = (
    _tensor, _not_a_tensor, _backend, _state, _identity, _length, _sizes, _device, _value,
)  # fmt: skip
