"""One failed guard as torch writes it in recompile reasons, taken apart.

The texts come from ``torch/_dynamo/guards.py`` (``get_guard_fail_reason_helper``) and, for tensors,
from ``torch/csrc/dynamo/guards.cpp``. One is ``COMPILE_ID: GUARD  # CODE  # FILE:LINE in FUNCTION
(HINT: …)``, from 2.12 with a ``User stack trace:`` behind it; 2.6 writes ``L['x']`` for ``x``.
"""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from traceview.compile_id import CompileId
from traceview.torchtext.frames import first_user_frame, parse_traceback

_ID = re.compile(r"\A[\s-]*\[?(?P<id>(?:!\d+/)?\d+/\d+(?:_\d+)?)\]?: ")
_USER_STACK = re.compile(r"^(?:-|[^\S\n])*User stack trace:.*$", re.MULTILINE)
_COMMENT = re.compile(
    r"\s# (?P<code>.{0,2000}?)  # (?P<file>[^#\n]{0,1000}?):(?P<line>\d{1,9})"
    r" in (?P<function>[\w<>.]+)"
)
_PLAIN_COMMENT = re.compile(
    r"\s# \(?(?P<file>[^#\n]{0,1000}?):(?P<line>\d{1,9}) in (?P<function>[\w<>.]+)"
)
#: What stands there where torch knows no line.
_NO_SOURCE = re.compile(r"\s# \(unknown source [^\n]*, please file a bug\)")
#: A float that torch made symbolic, by way of a tensor.
_AS_TENSOR = re.compile(r"___as_tensor\((?P<name>[^()\n]{1,200})\)\.item\(\)")
_LOCAL = re.compile(r"\bL\[\s*['\"](.{0,300}?)['\"]\s*\]")
_VARIABLE = re.compile(r'\(HINT: guard on "(?P<name>\w+)"(?P<rest>[^\s,()]*)')
_LIMIT = 16_000  # characters: no guard is longer, and patterns stay bounded work
_MEANING_LIMIT = 2_000
_MODULE_INT = "integer attributes of the nn.Module"

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
#: Guards on torch's state apart from GLOBAL_STATE: how they begin → what they look at.
_AMBIENT = {
    "___check_torch_function": "torch_function_mode_stack",
    "utils_device.CURRENT_DEVICE ": "default_device",
    "torch.autograd.forward_ad._current_level ": "forward_ad",
    "torch._functorch.pyfunctorch.compare_functorch_state(": "functorch",
    "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ": "saved_tensors_hooks",
}
_OPERATOR = re.compile(r"[-+*/%]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_READ = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\[\]]*\])*(?![\w(.\[])")
#: Kind → how such a guard begins, the first that fits counts. Groups: ``name``, of several the one
#: that is there, ``old``, ``new`` and ``dim``; what else decides is in ``_meaning``.
_FORMS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "tensor",
            r"tensor '(?P<name>.*)' (?P<what>[\w ]*?)\s*mismatch(?: at index (?P<dim>\d+))?\.",
        ),
        (
            "type_id",
            r"expected type of '(?P<name>.*)' to be (?P<old>.*?),?\s*'? but found (?P<new>.*)",
        ),
        (
            "backend",
            r"(?s)BACKEND_MATCH.*?Cached backend: (?P<old>.*?)\. New backend: (?P<new>.*?)\. If "
            r"|.*?(?:BACKEND_MATCH|___lookup_backend)",
        ),
        (
            "global_state",
            r"(?:GLOBAL_STATE changed: (?P<name>[\w ,()]*?)|___check_global_state\(\))\s*\Z",
        ),
        ("global_state", f"(?P<name>{'|'.join(map(re.escape, _AMBIENT))})"),
        ("type_id", r"___check_type_id\((?P<name>.+), \d+\)(?:, type=(?P<old><.*>|\S+))?"),
        ("obj_id", r"___check_obj_id\((?P<name>.+), (?P<old>\d+)\)"),
        ("obj_id", r"Cache line invalidated because (?P<name>.+) got deallocated"),
        ("length", r"(?:len|___\w+_len)\((?P<name>.+?)\) (?:==|!=) (?P<old>\d+)"),
        ("length", r"not (?P<name>(?!___|hasattr\()[^\s=<>!]+)\Z"),
        (
            "keys",
            r"(?s)(?:not )?(?:___dict_contains\(.*, (?P<name>[^,]+)\)"
            r"|set\.__contains__\((?P<name_2>.+?), .*\)"
            r"|list\((?:dict\.keys\((?P<name_3>.+)\)|(?P<name_4>.+)\.keys\(\))\)(?:\[\d+\])?"
            r" == (?P<old>.+))",
        ),
        # a name begins where its letters do: tried from each of them, a long text would take its
        # square
        (
            "shape_guard",
            r"(?s:.*?)(?:(?<![^\s()<>=*+,!%/-])(?P<name>[^\s()<>=*+,!%/-]+)\.(?:size|stride)\(\)"
            r"\[(?P<dim>\d+)\]|\.storage_offset\(\))",
        ),
        ("device", r"str\((?P<name>.+)\.device\) == (?P<old>.+)"),
        ("alias", r"Duplicate tensors found: \[['\"](?P<name>.+?)['\"],"),
        ("alias", r"(?P<name>[^=<>!]+?) is (?!not |None$)\S+\Z"),
        ("value", r"(?s)(?P<name>[^=<>!]+?) (?:==|is) (?P<old>.+)"),
    )
)


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
    found = _meaning(guard)
    kind = "module_int" if found.kind == "value" and _MODULE_INT in line else found.kind
    source = found.source_name
    if source and "__closure__" in source and (hint := _VARIABLE.search(line)):
        source = hint["name"] + hint["rest"]  # scale for fn.__closure__[0].cell_contents
    quoted = comment.groupdict() if comment else {}
    compile_id = CompileId.parse(named["id"]) if named else None
    return replace(
        found,
        guard=guard,
        kind=kind,
        source_name=source,
        user_file=frame.file if frame else quoted.get("file"),
        user_line=frame.line if frame else (int(quoted["line"]) if quoted else None),
        user_code=(frame.code if frame else None) or quoted.get("code"),
        failed_compile_id=str(compile_id) if compile_id else None,
    )


def _meaning(guard: str) -> GuardText:
    """Kind, source and values of a guard by the first of ``_FORMS`` that fits."""
    guard = guard[:_MEANING_LIMIT]
    fitting = ((kind, match) for kind, form in _FORMS if (match := form.match(guard)))
    kind, match = next(fitting, ("other", None))
    if match is None:
        return GuardText(guard)
    said = match.groupdict()
    names = (text for group, text in said.items() if group.startswith("name"))
    name = next((text for text in names if text is not None), None)
    dim, old, new = (said.get(group) for group in ("dim", "old", "new"))
    if kind == "tensor":
        kind = _TENSOR_KINDS.get(match["what"], "other")
        values = _EXPECTED.search(guard.partition(_ON_PARAMETER)[0], match.end())
        old, new = values.group("old", "new") if values else (None, None)
        if kind == "requires_grad" and old in ("0", "1"):
            old, new = ("True", "False") if old == "1" else ("False", "True")
    elif kind == "global_state":
        name = _AMBIENT.get(name or "", (name or "").strip()) or None
    elif kind == "obj_id" and old:
        old = f"id {old}"
    elif kind == "length":
        old = old or "0"  # ``not x``
    elif kind == "alias" and name:
        name = name.strip()
    elif kind == "value" and name and old:
        name, old = name.strip(), old.strip()
        if _OPERATOR.search(_QUOTED.sub("", name)):
            # 0.1*self.p / 5.0 == 0.09: what was calculated from self.p
            read, old = set(_READ.findall(name)), None
            name = read.pop() if len(read) == 1 else name
    return GuardText(guard, kind, name, int(dim) if dim else None, old, new)
