"""How many places an index expression of generated code can name, by its variables' ranges."""

from __future__ import annotations

import re
from math import prod
from typing import Protocol

_LOADED = re.compile(r"\btmp\d+\b")
_NUMEL = re.compile(r"^\s+(?P<prefix>[xyz]|r\d?_?)numel = (?P<value>\d{1,18})\s*$")
_VARIABLE = re.compile(r"^\s+(?P<name>[xyz]\d+|r\d?_?\d+) = (?P<value>.{1,300})$")
_INDEX = re.compile(r"\b(?P<prefix>[xyz]|r\d_|r)index\b")
_MODULO = re.compile(r"% (\d{1,18})\)*$")
_DIVIDED = re.compile(r"index ?// ?(\d{1,18})\)*$")
_WHOLE = re.compile(r"\(*(?:[xyz]|r\d_|r)index\)*$")
_NAME = re.compile(r"\b(?:[xyz]\d+|r\d_\d+|r\d+)\b")
_UNKNOWN = re.compile(r"\b(?:ks\d+|s\d+|u\d+|[xyzr]\w*index|[xyzr]\w*offset|load_seed_offset)\b")
_LOOP = re.compile(
    r"for\s*\(int64_t (?P<name>\w+)=static_cast<int64_t>\((?P<low>\d{1,18})L?\); (?P=name)<"
    r"static_cast<int64_t>\((?:(?P<high>\d{1,18})L?\)|.)"
)
_DEEPEST = 64


class Ranges(Protocol):
    """Ranges of index variables, learnt line by line."""

    def line(self, line: str) -> None:
        """Take note of what ``line`` says of ranges."""

    def places(self, index: str) -> tuple[int | None, bool]:
        """Places that ``index`` can name (None: not known), and whether a loaded value decides."""


class TritonRanges:
    """``xnumel = 512``, ``x1 = xindex // 16``, ``x0 = (xindex % 16)``, ``r0_2 = r0_index``."""

    def __init__(self) -> None:
        self._numels: dict[str, int] = {}
        self._variables: dict[str, tuple[str, int | None]] = {}

    def line(self, line: str) -> None:
        if match := _NUMEL.match(line):
            self._numels[match["prefix"]] = int(match["value"])
            return
        match = _VARIABLE.match(line)
        index = _INDEX.search(match["value"]) if match else None
        if match and index:
            prefix = index["prefix"]
            self._variables[match["name"]] = (prefix, self._range(match["value"], prefix))

    def _range(self, value: str, prefix: str) -> int | None:
        if modulo := _MODULO.search(value):
            return int(modulo[1])
        numel = self._numel(prefix)
        if numel is None or _WHOLE.match(value.strip()):
            return numel
        divided = _DIVIDED.search(value)
        return -(-numel // int(divided[1])) if divided and int(divided[1]) else None

    def _numel(self, prefix: str) -> int | None:
        return self._numels.get(prefix)

    def places(self, index: str) -> tuple[int | None, bool]:
        if _LOADED.search(index):
            return prod(self._numels.values()) if self._numels else None, True
        by_prefix: dict[str, list[int | None]] = {}
        for name in set(_NAME.findall(index)):
            prefix, size = self._variables.get(name, ("", None))
            by_prefix.setdefault(prefix, []).append(size)
        if _UNKNOWN.search(index) or any(None in sizes for sizes in by_prefix.values()):
            return None, False
        total = 1
        for prefix, sizes in by_prefix.items():
            most = self._numel(prefix)
            together = prod(size for size in sizes if size is not None)
            total *= together if most is None else min(most, together)
        return total, False


class CppRanges:
    """Loops that are open; a brace closes them."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str, int | None]] = []
        self._depth = 0

    def line(self, line: str) -> None:
        if match := _LOOP.search(line):
            high = match["high"]
            size = None if high is None else max(0, int(high) - int(match["low"]))
            if len(self._open) < _DEEPEST:
                self._open.append((self._depth, match["name"], size))
        for sign in re.findall(r"[{}]", line):
            self._depth += 1 if sign == "{" else -1
            if sign == "}":
                self._open = [loop for loop in self._open if loop[0] < self._depth]

    def places(self, index: str) -> tuple[int | None, bool]:
        indexed = bool(_LOADED.search(index))
        known = {name: size for _, name, size in self._open}
        if indexed:
            used = list(known.values())
        else:
            used = [known.get(name) for name in set(re.findall(r"\bx\d+\w*\b", index))]
            if _UNKNOWN.search(index):
                used.append(None)
        sizes = [size for size in used if size is not None]
        return (prod(sizes) if len(sizes) == len(used) else None), indexed
