"""One failed guard as torch writes it in recompile reasons, taken apart.

The texts come from ``torch/_dynamo/guards.py`` (``get_guard_fail_reason_helper``) and, for tensors,
from ``torch/csrc/dynamo/guards.cpp``. One is ``COMPILE_ID: GUARD  # CODE  # FILE:LINE in FUNCTION
(HINT: …)``, from 2.12 with a ``User stack trace:`` behind it; 2.6 writes ``L['x']`` for ``x``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from traceview.compile_id import CompileId
from traceview.torchtext.frames import first_user_frame, parse_traceback

_ID = re.compile(r"\A[\s-]*\[?(?P<id>(?:!\d+/)?\d+/\d+(?:_\d+)?)\]?: ")
_USER_STACK = re.compile(r"^[\s-]*User stack trace:.*$", re.MULTILINE)
_COMMENT = re.compile(
    r"\s+# (?P<code>.*?)  # (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in (?P<function>[\w<>.]+)"
)
_PLAIN_COMMENT = re.compile(
    r"\s+# \(?(?P<file>[^#\n]*?):(?P<line>\d{1,9}) in (?P<function>[\w<>.]+)"
)
#: What stands there where torch knows no line.
_NO_SOURCE = re.compile(r"\s+# \(unknown source [^\n]*, please file a bug\)")
#: A float that torch made symbolic, by way of a tensor.
_AS_TENSOR = re.compile(r"___as_tensor\((?P<name>[^()\n]{1,200})\)\.item\(\)")
_LOCAL = re.compile(r"\bL\[\s*['\"](.*?)['\"]\s*\]")
_VARIABLE = re.compile(r'\(HINT: guard on "(?P<name>\w+)"(?P<rest>[^\s,()]*)')
_LIMIT = 16_000  # characters: no guard is longer, and patterns stay bounded work
_MEANING_LIMIT = 2_000
_MODULE_INT = "integer attributes of the nn.Module"

_TENSOR = re.compile(
    r"tensor '(?P<name>.*)' (?P<what>[\w ]*?)\s*mismatch(?: at index (?P<dim>\d+))?\."
)
_EXPECTED = re.compile(
    r"expected(?: [a-z_ ]*? to be)? (?:requires_grad=)?(?P<old>.+?)(?:, actual (?P<new>.+))?$", re.I
)
#: torch appends advice to the values of a guard on a parameter (torch/csrc/dynamo/guards.cpp).
_ON_PARAMETER = ". Guard failed on a parameter, "
_TENSOR_KINDS = {
    **{kind: kind for kind in ("size", "stride", "dtype", "rank", "requires_grad", "device")},
    "dispatch key set": "dispatch_keys",
    "Tensor device index": "device",
}
_NOT_TENSOR = re.compile(
    r"expected type of '(?P<name>.*)' to be (?P<old>.*?),?\s*'? but found (?P<new>.*)"
)
_CHECK = re.compile(
    r"___check_(?P<what>type|obj)_id\((?P<name>.+), (?P<id>\d+)\)(?:, type=(?P<type><.*>|\S+))?"
)
_LENGTH = re.compile(r"(?:len|___\w+_len)\((?P<name>.+?)\) (?:==|!=) (?P<old>\d+)")
_EMPTY = re.compile(r"not (?P<name>(?!___|hasattr\()[^\s=<>!]+)")
_KEYS = re.compile(
    r"(?:not )?(?:___dict_contains\(.*, (?P<dict>[^,]+)\)|set\.__contains__\((?P<set>.+?), .*\)"
    r"|list\((?:dict\.keys\((?P<keys>.+)\)|(?P<view>.+)\.keys\(\))\)(?:\[\d+\])? == (?P<old>.+))",
    re.DOTALL,
)
_GONE = re.compile(r"Cache line invalidated because (?P<name>.+) got deallocated")
_ALIAS = re.compile(
    r"Duplicate tensors found: \[['\"](?P<first>.+?)['\"],"
    r"|(?P<name>[^=<>!]+?) is (?!not |None$)\S+\Z"
)
_BACKEND = re.compile(
    r"BACKEND_MATCH.*?Cached backend: (?P<old>.*?)\. New backend: (?P<new>.*?)\. If ", re.DOTALL
)
_STATE = re.compile(
    r"(?:GLOBAL_STATE changed: (?P<name>[\w ,()]*?)|___check_global_state\(\))\s*\Z"
)
#: Guards on torch's state apart from GLOBAL_STATE: how they begin → what they look at.
_AMBIENT = {
    "___check_torch_function": "torch_function_mode_stack",
    "utils_device.CURRENT_DEVICE ": "default_device",
    "torch.autograd.forward_ad._current_level ": "forward_ad",
    "torch._functorch.pyfunctorch.compare_functorch_state(": "functorch",
    "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ": "saved_tensors_hooks",
}
# a name begins where its letters do: tried from each of them, a long text would take its square
_SIZES = re.compile(
    r"(?<![^\s()<>=*+,!%/-])(?P<name>[^\s()<>=*+,!%/-]+)\.(?:size|stride)\(\)\[(?P<dim>\d+)\]"
    r"|\.storage_offset\(\)"
)
_DEVICE = re.compile(r"str\((?P<name>.+)\.device\) == (?P<old>.+)")
_OPERATOR = re.compile(r"[-+*/%]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_READ = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\[\]]*\])*(?![\w(.\[])")
_VALUE = re.compile(r"(?P<name>[^=<>!]+?) (?:==|is) (?P<old>.+)", re.DOTALL)


class GuardText(msgspec.Struct, frozen=True):
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


class _Meaning(msgspec.Struct, frozen=True):
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
    comment = _COMMENT.search(line) or _PLAIN_COMMENT.search(line) or _NO_SOURCE.search(line)
    guard = line[: comment.start()] if comment else line.split(" (HINT: ")[0]
    guard = _AS_TENSOR.sub(r"\g<name>", _LOCAL.sub(r"\1", guard)).strip()
    meanings = (read(guard[:_MEANING_LIMIT]) for read in _READERS)
    found = next(filter(None, meanings), _Meaning())
    kind = "module_int" if found.kind == "value" and _MODULE_INT in line else found.kind
    quoted = comment.groupdict() if comment else {}
    compile_id = CompileId.parse(named["id"]) if named else None
    return GuardText(
        guard=guard,
        kind=kind,
        source_name=_closed_over(found.source_name, line),
        dim=found.dim,
        old=found.old,
        new=found.new,
        user_file=frame.file if frame else quoted.get("file"),
        user_line=frame.line if frame else (int(quoted["line"]) if quoted else None),
        user_code=(frame.code if frame else None) or quoted.get("code"),
        failed_compile_id=str(compile_id) if compile_id else None,
    )


def _closed_over(source: str | None, line: str) -> str | None:
    """``scale`` for ``fn.__closure__[0].cell_contents``: torch's hint has the variable's name."""
    hint = _VARIABLE.search(line) if source and "__closure__" in source else None
    return hint["name"] + hint["rest"] if hint else source


def _tensor(guard: str) -> _Meaning | None:
    match = _TENSOR.match(guard)
    if match is None:
        return None
    values = _EXPECTED.search(guard.partition(_ON_PARAMETER)[0], match.end())
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
    if match is not None:
        return _Meaning("global_state", (match["name"] or "").strip() or None)
    ambient = next((name for start, name in _AMBIENT.items() if guard.startswith(start)), None)
    return _Meaning("global_state", ambient) if ambient else None


def _identity(guard: str) -> _Meaning | None:
    match = _CHECK.match(guard)
    if match is None:
        gone = _GONE.match(guard)
        return _Meaning("obj_id", gone["name"]) if gone else None
    if match["what"] == "type":
        return _Meaning("type_id", match["name"], None, match["type"])
    return _Meaning("obj_id", match["name"], None, f"id {match['id']}")


def _length(guard: str) -> _Meaning | None:
    match = _LENGTH.match(guard)
    if match is not None:
        return _Meaning("length", match["name"], None, match["old"])
    empty = _EMPTY.fullmatch(guard)
    return _Meaning("length", empty["name"], None, "0") if empty else None


def _keys(guard: str) -> _Meaning | None:
    match = _KEYS.match(guard)
    if match is None:
        return None
    name = next(filter(None, match.group("dict", "set", "keys", "view")), None)
    return _Meaning("keys", name, None, match["old"])


def _alias(guard: str) -> _Meaning | None:
    match = _ALIAS.match(guard)
    return _Meaning("alias", (match["first"] or match["name"]).strip()) if match else None


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
    if match is None:
        return None
    name = match["name"].strip()
    if not _OPERATOR.search(_QUOTED.sub("", name)):
        return _Meaning("value", name, None, match["old"].strip())
    read = set(_READ.findall(name))  # 0.1*self.p / 5.0 == 0.09: what was calculated from self.p
    return _Meaning("value", read.pop() if len(read) == 1 else name)


_READERS: tuple[Callable[[str], _Meaning | None], ...] = (
    *(_tensor, _not_a_tensor, _backend, _state, _identity, _length, _keys, _sizes, _device),
    *(_alias, _value),
)
