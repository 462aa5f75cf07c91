"""Guards: the tree that ``dynamo_cpp_guards_str`` prints, one manager or guard a line::

TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(…), type=…
| | +- TENSOR_MATCH: check_tensor(L['x'], …)  # F.relu(x)  # nn/functional.py:134 in relu
"""

from __future__ import annotations

import re

from traceview.parse.cutting import Record
from traceview.parse.structured.decode import text_of
from traceview.parse.structured.state import Reader

GUARDS_PER_COMPILE = 50_000
GUARD_CHARACTERS = 500

_MANAGER = re.compile(r"(?:KeyManager: |ValueManager: )*\w*Manager\b(?:: source=(?P<source>.*))?")
_SOURCE_END = re.compile(r", (?:accessed_by|type|tag_safe)=")
_LEAF = re.compile(r"(?P<kind>[A-Z][A-Z0-9_]*)(?:: (?P<guard>.*))?$")
_PLACE = re.compile(r"# (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in [^#\n]*$")


def guard_tree(reader: Reader, record: Record) -> None:
    """One row for each leaf; its source is that of the nearest manager above it."""
    compile = reader.process.find(record)
    sources: list[str | None] = []
    rows = reader.process.rows["guards"]
    head = reader.process.head(record, compile)
    kept = 0
    for line in text_of(reader, record).splitlines():
        bars, branch, what = line.partition("+- ")
        depth = len(bars) // 2
        if not branch or bars != "| " * depth or kept >= GUARDS_PER_COMPILE:
            continue
        del sources[depth:]
        above = sources[-1] if sources else None
        if leaf := _LEAF.match(what):
            kept += 1
            guard, file, number = _guard(leaf["guard"] or "")
            rows.append({
                **head, "kind": leaf["kind"], "source_name": above,
                "guard": guard, "file": file, "line": number,
            })  # fmt: skip
        elif (manager := _MANAGER.match(what)) and manager["source"]:
            sources.append(_SOURCE_END.split(manager["source"], 1)[0])
        else:
            sources.append(above)


def _guard(text: str) -> tuple[str | None, str | None, int | None]:
    """A guard without its comment, and the file and line that the comment names."""
    guard = text.partition(" # ")[0].strip()[:GUARD_CHARACTERS] or None
    place = _PLACE.match(text, max(0, text.rfind("#")))
    if place is None:
        return guard, None, None
    line = int(place["line"])
    return guard, place["file"].strip(), line if line < 2**31 else None
