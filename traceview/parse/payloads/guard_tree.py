"""The tree of guards that ``dynamo_cpp_guards_str`` prints, one manager or guard a line::

TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(…), type=…
| | +- TENSOR_MATCH: check_tensor(L['x'], …)  # F.relu(x)  # nn/functional.py:134 in relu
"""

from __future__ import annotations

import re

import msgspec

from traceview.torchtext.remembered import remembered

GUARDS_PER_COMPILE = 50_000
GUARD_CHARACTERS = 500

#: In front of a branch, by how deep it stands.
_BARS = ["| " * depth for depth in range(500)]
_KIND = re.compile(r"[A-Z][A-Z0-9_]*")
_MANAGER = re.compile(r"(?:KeyManager: |ValueManager: )*\w*")
_SOURCE = "Manager: source="
_SOURCE_END = re.compile(r", (?:accessed_by|type|tag_safe)=")
_PLACE = re.compile(r"# (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in [^#\n]*$")

_Leaf = tuple[str, str | None, str | None, int | None]


class Guards(msgspec.Struct, array_like=True, tag="guards"):
    """The leaves of one tree, column by column; a leaf's source is its nearest manager's."""

    kind: list[str] = []
    source_name: list[str | None] = []
    guard: list[str | None] = []
    file: list[str | None] = []
    line: list[int | None] = []


def guards(text: str) -> Guards:
    """Every guard of the tree in its order, as many as one compile may have."""
    rows: list[tuple[str, str | None, str | None, str | None, int | None]] = []
    sources: list[str | None] = []
    for printed in text.split("\n"):
        bars, branch, what = printed.partition("+- ")
        depth = len(bars) // 2
        if not branch or depth >= len(_BARS) or bars != _BARS[depth]:
            continue
        del sources[depth:]
        above = sources[-1] if sources else None
        leaf, source = _told(what)
        if leaf is None:
            sources.append(source or above)
            continue
        kind, guard, file, line = leaf
        rows.append((kind, above, guard, file, line))
        if len(rows) == GUARDS_PER_COMPILE:
            break
    return Guards(*map(list, zip(*rows, strict=True)))


@remembered(most=2_000, longest=1_000)  # compiles of one function have most guards in common
def _told(what: str) -> tuple[_Leaf | None, str | None]:
    """Kind, guard, file and line of a leaf; else the source that a manager names."""
    kind, _, leaf = what.partition(": ")
    if not _KIND.fullmatch(kind):
        name, _, source = what.partition(_SOURCE)
        named = source and _MANAGER.fullmatch(name)
        return None, _SOURCE_END.split(source, 1)[0] if named else None
    guard = leaf.partition(" # ")[0].strip()[:GUARD_CHARACTERS] or None
    place = _PLACE.match(leaf[leaf.rfind("#") :])
    if place is None:
        return (kind, guard, None, None), None
    line = int(place["line"])
    return (kind, guard, place["file"].strip(), line if line < 2**31 else None), None
