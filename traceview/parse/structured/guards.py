"""Guards: the tree that ``dynamo_cpp_guards_str`` prints, one manager or guard a line::

TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(…), type=…
| | +- TENSOR_MATCH: check_tensor(L['x'], …)  # F.relu(x)  # nn/functional.py:134 in relu
"""

from __future__ import annotations

import re

from traceview.parse.structured.decode import text_of
from traceview.parse.structured.records import Record
from traceview.parse.structured.state import Reader

GUARDS_PER_COMPILE = 50_000
GUARD_CHARACTERS = 500

_LINE = re.compile(r"^(?P<bars>(?:\| )*)\+- (?P<what>.*)$")
_MANAGER = re.compile(r"^(?:KeyManager: |ValueManager: )*\w*Manager\b(?:: source=(?P<source>.*))?")
_SOURCE_END = re.compile(r", (?:accessed_by|type|tag_safe)=")
_LEAF = re.compile(r"^(?P<kind>[A-Z][A-Z0-9_]*)(?:: (?P<guard>.*))?$")
_PLACE = re.compile(r"# (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in [^#\n]*$")


def guard_tree(reader: Reader, record: Record) -> None:
    """One row for each leaf; its source is that of the nearest manager above it."""
    compile = reader.process.find(record)
    sources: list[str | None] = []
    kept = 0
    for line in text_of(reader, record).splitlines():
        found = _LINE.match(line)
        if found is None or kept >= GUARDS_PER_COMPILE:
            continue
        depth, what = len(found["bars"]) // 2, found["what"]
        del sources[depth:]
        above = sources[-1] if sources else None
        if manager := _MANAGER.match(what):
            source = manager["source"]
            sources.append(_SOURCE_END.split(source, 1)[0] if source else above)
        elif leaf := _LEAF.match(what):
            kept += 1
            reader.process.add("guards", record, compile, {
                "kind": leaf["kind"], "source_name": above, **_guard(leaf["guard"] or ""),
            })  # fmt: skip
        else:
            sources.append(above)


def _guard(text: str) -> dict[str, str | int | None]:
    place = _PLACE.search(text)
    return {
        "guard": text.split(" # ", 1)[0].strip()[:GUARD_CHARACTERS] or None,
        "file": place["file"].strip() if place else None,
        "line": int(place["line"]) if place and int(place["line"]) < 2**31 else None,
    }
