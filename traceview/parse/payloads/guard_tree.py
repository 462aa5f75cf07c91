"""The tree of guards that ``dynamo_cpp_guards_str`` prints, one manager or guard a line::

TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(…), type=…
| | +- TENSOR_MATCH: check_tensor(L['x'], …)  # F.relu(x)  # nn/functional.py:134 in relu
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

GUARDS_PER_COMPILE = 50_000
GUARD_CHARACTERS = 500

_KIND = re.compile(r"[A-Z][A-Z0-9_]*")
_MANAGER = re.compile(r"(?:KeyManager: |ValueManager: )*\w*")
_SOURCE = "Manager: source="
_SOURCE_END = re.compile(r", (?:accessed_by|type|tag_safe)=")
_PLACE = re.compile(r"# (?P<file>[^#\n]*?):(?P<line>\d{1,9}) in [^#\n]*$")


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
        depth = _depth(bars)
        if not branch or depth is None:
            continue
        del sources[depth:]
        above = sources[-1] if sources else None
        kind, _, leaf = what.partition(": ")
        if not _is_leaf(kind):
            sources.append(_source(what) or above)
            continue
        guard = leaf.partition(" # ")[0].strip()[:GUARD_CHARACTERS] or None
        rows.append((kind, above, guard, *_place(leaf[leaf.rfind("#") :])))
        if len(rows) == GUARDS_PER_COMPILE:
            break
    return Guards(*map(list, zip(*rows, strict=True)))


@lru_cache(maxsize=1_000)
def _depth(bars: str) -> int | None:
    """How deep a line stands whose branch begins behind ``bars``."""
    depth = len(bars) // 2
    return depth if bars == "| " * depth else None


@lru_cache(maxsize=1_000)
def _is_leaf(kind: str) -> bool:
    return _KIND.fullmatch(kind) is not None


@lru_cache(maxsize=1_000)
def _is_manager(name: str) -> bool:
    return _MANAGER.fullmatch(name) is not None


def _source(manager: str) -> str | None:
    """The source that a manager's line names."""
    name, _, source = manager.partition(_SOURCE)
    return _SOURCE_END.split(source, 1)[0] if source and _is_manager(name) else None


@lru_cache(maxsize=10_000)  # many guards of a compile come from one line
def _place(comment: str) -> tuple[str | None, int | None]:
    """The file and line that the comment behind a guard names."""
    place = _PLACE.match(comment)
    if place is None:
        return None, None
    line = int(place["line"])
    return place["file"].strip(), line if line < 2**31 else None
