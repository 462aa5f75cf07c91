"""The text of a graph break, as torch 2.6 to 2.13 write it to the structured log and TORCH_LOGS.

The shapes (``torch/_dynamo/symbolic_convert.py``, ``exc.py``, ``convert_frame.py``):

    Graph break in user code at FILE:LINE            (2.6: Reason:, later: Graph Break Reason:)
    Graph Break Reason: [Encountered graph break when attempting to trace OP:\\n\\n]GB_TYPE
      Explanation: …
      Hint: …
      Developer debug context: …
     For more details … visit: https://…/gb/gb0059.html            (from 2.10)
    [Stack variable source attribution: …]
    User code traceback:
      File …

Where the frame is skipped, the reason holds two such bodies (the break, and why Dynamo could not
resume from it); ``parse_graph_break`` reads type, id and hints from the first: the cause.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import asdict

from traceview.torchtext.frames import StackFrame, parse_traceback, user_columns

_HEAD = re.compile(
    r"Graph break(?: \(user stack suppressed due to duplicate graph break\))? in user code at "
    r"(?P<file>.*?):(?P<line>\d{1,9})[^\S\n]*$",
    re.MULTILINE,
)
_REASON = re.compile(r"^[^\S\n]*(?:Graph Break )?Reason: ", re.MULTILINE)
_REASON_END = re.compile(
    r"^[^\S\n]*(?:Stack variable source attribution:|User code traceback:"
    r"|(?:Graph break: )?from user code(?: at)?:|Traceback \(most recent call last\):)",
    re.MULTILINE,
)
_STACK = re.compile(
    r"^.*(?:User code traceback:|from user code(?: at)?:).*$", re.MULTILINE | re.IGNORECASE
)
_SKIPPED = re.compile(
    r"Skipping the (?:function|frame)|which results in a skip|Graph break: skip:"
    r"|^[^\S\n]*Developer debug context: frame skipped:",
    re.MULTILINE,
)
_PREAMBLE = re.compile(
    r"\A(?:(?:Failed to handle graph break gracefully|Encountered graph break that we cannot resume"
    r" from)\..*?Graph break encountered:\s*"
    r"|Encountered graph break when attempting to trace [^\n]*:\s*\n"
    r"|Graph break under [^\n]*\n\s*"
    r"|Graph break: torch\.compile cannot properly resume[^\n]*\n\s*"
    r"|Unsupported: )+",
    re.DOTALL,
)
_FIELD = re.compile(r"^  (?P<name>Explanation|Hint|Developer debug context): ", re.MULTILINE)
_URL = re.compile(
    r"^ *For more details about this graph break[^\n]*?/(?P<id>gb\d{4,6})\.html", re.M
)
#: A backend that fails quotes the line of the operator that it was at, which the stack lacks.
_TRACED = "\nOriginal traceback:\n"
_SECOND = "*** While handling this graph break"

# Gb_type to id, for torch 2.8 and older, whose messages carry no id: the types that decide a rule,
# from torch/_dynamo/graph_break_registry.json of 2.13; below them the words of 2.6.
IDS = {
    "Call to `torch._dynamo.graph_break()`": "GB0025",
    "Data dependent operator": "GB0033",
    "Data-dependent branching with non-constant __bool__": "GB0035",
    "Dynamic shape operator": "GB0036",
    "Dynamic shape operator (no meta kernel)": "GB0037",
    "Dynamo cache limit exceeded": "GB0039",
    "Dynamo recompile limit exceeded": "GB0039",
    "Failed to trace builtin operator": "GB0059",
    "Graph break under GenericContextWrappingVariable": "GB0066",
    "Attempted to call function marked as skipped": "GB0007",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": "GB0124",
    "Unsupported Tensor.backward() call": "GB0123",
    "Unsupported context manager": "GB0142",
    "Unsupported method call": "GB0156",
    "Data-dependent branching": "GB0170",
    "logging.Logger method not supported for non-export cases": "GB0291",
    "graph break in loop": "GB7000",
}
_IDS_2_6 = (
    ("Tensor.item", "GB0124"),
    ("generic_jump TensorVariable", "GB0170"),
    ("builtin: ", "GB0059"),
    ("dynamic shape operator: ", "GB0036"),
    ("data dependent operator: ", "GB0033"),
    ("call_function graph_break in skip_files", "GB0025"),
    ("'skip function graph_break in file", "GB0025"),
)


class GraphBreakText(msgspec.Struct, frozen=True):
    """One graph break as its text has it; what the text lacks is None or empty."""

    reason: str
    gb_type: str | None = None
    gb_id: str | None = None
    explanation: str | None = None
    hints: tuple[str, ...] = ()
    context: str | None = None
    frame_skipped: bool = False
    user_file: str | None = None
    user_line: int | None = None
    stack: tuple[StackFrame, ...] = ()


def parse_graph_break(text: str) -> GraphBreakText:
    """Read one graph break message, prefix lines already taken off; never raises.

    ``user_file`` and ``user_line`` are those of the heading, else of the innermost stack frame;
    ``stack`` is the user code traceback, outermost first.
    """
    head = _HEAD.search(text)
    start = _REASON.search(text, head.end() if head else 0)
    body_start = start.end() if start else (head.end() if head else 0)
    end = _REASON_END.search(text, body_start)
    reason = text[body_start : end.start() if end else len(text)].strip()
    # Type, id, explanation, hints and context of the first body.
    body = _PREAMBLE.sub("", reason.split(_SECOND, 1)[0]).strip()
    url = _URL.search(body)
    if url:
        body = body[: url.start()].rstrip()
    marks = list(_FIELD.finditer(body))
    gb_type = body[: marks[0].start()] if marks else body
    gb_type = next((line.strip() for line in gb_type.splitlines() if line.strip()), "")
    values: dict[str, list[str]] = {"Explanation": [], "Hint": [], "Developer debug context": []}
    ends = [*(mark.start() for mark in marks[1:]), len(body)]
    for mark, until in zip(marks, ends, strict=False):
        # torch indents the further lines of a field by four spaces
        text_of = body[mark.end() : until].splitlines()
        lines = (line.removeprefix("    ").rstrip() for line in text_of)
        values[mark["name"]].append("\n".join(lines).strip())
    explanation = next(iter(values["Explanation"]), None)
    at = _STACK.search(text, body_start)
    stack = parse_traceback(text[at.end() :]) if at else ()
    stack += parse_traceback((explanation or "").partition(_TRACED)[2])
    last = stack[-1] if stack else None
    return GraphBreakText(
        reason=reason,
        gb_type=gb_type or None,
        gb_id=url["id"].upper() if url else gb_id_of(gb_type),
        explanation=explanation,
        hints=tuple(values["Hint"]),
        context=next(iter(values["Developer debug context"]), None),
        frame_skipped=_SKIPPED.search(text[body_start : end.end() if end else None]) is not None,
        user_file=head["file"] if head else (last.file if last else None),
        user_line=int(head["line"]) if head else (last.line if last else None),
        stack=stack,
    )


def break_columns(text: str) -> dict[str, Any]:
    """The same as columns of table ``graph_breaks``; of its stack the user's own frame counts."""
    found = asdict(parse_graph_break(text))
    user = user_columns(found.pop("stack"))
    if user["user_file"] is None:
        user |= {"user_file": found["user_file"], "user_line": found["user_line"]}
    return {**found, **user, "hints": list(found["hints"])}


def gb_id_of(gb_type: str) -> str | None:
    """torch's id of a break type or of a 2.6 reason, where the small table here knows it."""
    known = IDS.get(gb_type)
    return known or next((gb for words, gb in _IDS_2_6 if gb_type.startswith(words)), None)
