"""What a Triton kernel computes too often, reduces, divides by, and adds to few places.

A value is followed from the loads that it comes from, and what is in their indices: of
``tmp0 = tl.load(in_ptr0 + (x0), …)`` there are as many values as of ``x0``, and as many of
``tmp1 = libdevice.exp(tmp0)``, which is computed for all elements of the block that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from math import inf, prod
from typing import NamedTuple

from traceview.torchtext.kernel_source import (
    FUNCTION,
    INDEX_NAME,
    JIT,
    NUMEL,
    TRITON_HEAD,
    Repeated,
    TritonCode,
    read_kernel,
)

_VALUE = re.compile(r"^[^\S\n]+(?P<name>_?tmp\d+) = (?P<value>.{1,2000})$")
_TMP = re.compile(r"\b_?tmp\d+\b")
_BLOCK = re.compile(r"\b([XYZ]|R\d?_?)BLOCK\b")
_CHECKED = re.compile(
    r"tl\.device_assert\(\(\(?0 <= (?:tl\.broadcast_to\()?(?P<name>tmp\d+)\b[^&\n]{0,200}"
    r"& \((?:tl\.broadcast_to\()?(?P=name)\b[^<\n]{0,200}< (?P<size>\d{1,18})\)"
)
_TIMES = re.compile(r"(?:(?P<factor>\d{1,9})\*)?\(?(?:tl\.broadcast_to\()?\b(?P<name>tmp\d+)\b")
#: Functions that are one instruction.
_FREE = {"abs"}
#: The constant part of an index, which stands first.
_SHIFT = re.compile(r"^\(*-?\d{1,18}\)? \+ ")
#: A place in a range, as in parts of ``torch.cat``: ``tmp4 = tmp0 < tmp3``, ``tmp9 = tmp4 & tmp8``.
_NUMBER = re.compile(r"^\s+(tmp\d+) = tl\.full\(\[1(?:, 1)*\], (\d{1,18}), tl\.int64\)$")
_PLACE = re.compile(r"^\s+(tmp\d+) = ([xyz]\d+|r\d_\d+)$")
_BOUND = re.compile(r"^\s+(tmp\d+) = (tmp\d+) (<|>=) (tmp\d+)$")
_BOTH = re.compile(r"^\s+(tmp\d+) = (tmp\d+) & (tmp\d+)$")
_MASK = re.compile(r"\btl\.load\(.*\), (tmp\d+)\b")
_DIVIDED = re.compile(r"(?:tmp\d+|\)) (?:%|//) (tmp\d+)\b|\w_integer\(tmp\d+, +(tmp\d+)\)")
#: What gives a value of another dtype than that of what it is computed from.
_RETYPED = re.compile(r"\.to\(tl\.(\w+)\)|[<>]|[!=]=|tl\.full\(|libdevice|tl_math")
_GRID = frozenset("xyz")  # dimensions that programs share among them
_HINTS = re.compile(r"size_hints=\{([^}\n]{0,200})\}")
_HINT = re.compile(r"'(\w+)': (\d{1,18})")


class _Spread(NamedTuple):
    """What a value in a Triton kernel differs by, and what it is computed for, as names."""

    by: Set[str] = frozenset()  # index variables, and loaded indices that are checked
    over: Set[str] = frozenset()  # dimensions: x, y, z, r0_
    part: float = 1.0  # of these, as its loads are masked


def _checked(body: str) -> dict[str, int]:
    """Loaded indices whose range a Triton kernel checks, and how many values they can have."""
    return {match["name"]: int(match["size"]) for match in _CHECKED.finditer(body)}


class _Masks:
    """Which part of an index variable's range a mask of a Triton kernel lets through."""

    def __init__(self, code: TritonCode) -> None:
        self._code = code
        self._numbers: dict[str, int] = {}
        self._places: dict[str, str] = {}
        self._ranges: dict[str, tuple[str, float, float]] = {}

    def line(self, line: str) -> None:
        """Take note of what ``line`` compares."""
        if match := _NUMBER.match(line):
            self._numbers[match[1]] = int(match[2])
        elif match := _PLACE.match(line):
            self._places[match[1]] = match[2]
        elif (match := _BOUND.match(line)) and match[2] in self._places:
            place, number = self._places[match[2]], self._numbers.get(match[4])
            if number is not None:
                low, high = (0.0, number) if match[3] == "<" else (number, inf)
                self._ranges[match[1]] = place, low, high
        elif (match := _BOTH.match(line)) and {match[2], match[3]} <= self._ranges.keys():
            (place, low, high), (other, least, most) = (self._ranges[match[n]] for n in (2, 3))
            if place == other:
                self._ranges[match[1]] = place, max(low, least), min(high, most)

    def part(self, line: str) -> float:
        """What a load in ``line`` has of its places, 0 to 1."""
        match = _MASK.search(line)
        place, low, high = self._ranges.get(match[1] if match else "", ("", 0.0, inf))
        size = self._code.values((place,), {}) if place else None
        return max(0.0, min(high, size) - low) / size if size else 1.0


class _Evaluations(NamedTuple):
    """How often a line computes a function, for how many values, and of what kind these are."""

    often: int
    few: int
    looked_up: bool
    parts: bool


class _Formulas:
    """What values are computed by, as numbers: the same number for the same formula.

    ``exact`` of the same elements; ``shifted`` of elements at a constant distance as well: those of
    ``tl.load(in_ptr0 + (1 + x0))`` and ``tl.load(in_ptr0 + (x0))`` are the same values.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.exact: dict[str, int] = {}
        self.shifted: dict[str, int] = {}

    def add(self, name: str, value: str, loaded: tuple[str, str, str] | None) -> None:
        """``name = value``, which reads memory if ``loaded``."""
        exact = shifted = value
        if loaded is not None:
            pointer, _, index = loaded
            exact, shifted = f"{pointer}[{index}]", f"{pointer}[{_SHIFT.sub('', index)}]"
        self.exact[name] = self._number(exact, self.exact)
        self.shifted[name] = self._number(shifted, self.shifted)

    def _number(self, value: str, known: Mapping[str, int]) -> int:
        """That of ``value``, in which those of other values are ``known``."""
        formula = _TMP.sub(lambda tmp: f"#{known.get(tmp[0])}", value)
        return self._numbers.setdefault(formula, len(self._numbers))


def repeated_in_triton(source: str, programs: int | None = None) -> list[Repeated]:
    """Functions that a Triton kernel computes more often than there are values of what they take.

    A load gives no more values than the index variables in it, or the loaded index, can name; of a
    loaded index the kernel checks the range. What differs along a reduction alone is computed by
    each of its ``programs``, if it is known how many there are. A mask holds back a load, not what
    is computed of it: ``torch.cat`` in one kernel computes all parts at every element. The same
    formula of elements at a constant distance computes the same values once more.
    """
    _, jit, body = source.rpartition(JIT)
    checked = _checked(body)
    code, spreads = TritonCode(), dict[str, _Spread]()
    masks, formulas = _Masks(code), _Formulas()
    # By function and formula, for each set of elements that it is computed of.
    found: dict[tuple[str, int], dict[int, _Evaluations]] = {}
    for line in body.splitlines() if jit else ():
        code.line(line)
        masks.line(line)
        match = _VALUE.match(line)
        if match is None:
            continue
        value = match["value"]
        loaded = next(code.accesses(value), None)
        formulas.add(match["name"], value, loaded)
        text = loaded[2] if loaded else value
        names = INDEX_NAME.findall(text)
        by, over = set(names), set[str]().union(*map(code.over, names))
        part = masks.part(line) if loaded else 1.0
        for name in _TMP.findall(text):
            spread = spreads.get(name, _Spread())
            by |= {name} if loaded and name in checked else spread.by
            over |= spread.over
            part = min(part, spread.part)
        if "broadcast_to" in text:
            over.update(map(str.lower, _BLOCK.findall(text)))
        if "tl.where(" in value:
            part = 1.0  # the parts meet
        spreads[match["name"]] = _Spread(by, over, part)
        for function in FUNCTION.findall(value):
            if function in _FREE:
                continue
            often, few = code.size(over), code.values(by, checked)
            if often and over and not over & _GRID:
                often *= programs or 1
            few = few and max(1, round(few * part))
            if often and few:
                one = _Evaluations(often, min(often, few), bool(by & checked.keys()), part < 1.0)
                key = function, formulas.shifted[match["name"]]
                found.setdefault(key, {})[formulas.exact[match["name"]]] = one
    by_function: dict[str, list[tuple[int, int, _Evaluations]]] = {}
    for (function, _), alike in found.items():
        often, few = sum(e.often for e in alike.values()), max(e.few for e in alike.values())
        if few < often:
            by_function.setdefault(function, []).append((often, few, next(iter(alike.values()))))
    return [
        Repeated(
            function,
            sum(often for often, *_ in kinds),
            sum(few for _, few, _ in kinds),
            scalar=False,
            looked_up=any(one.looked_up for *_, one in kinds),
            parts=any(one.parts for *_, one in kinds),
            formulas=len(kinds),
        )
        for function, kinds in by_function.items()
    ]


class Reduction(NamedTuple):
    """Elements that one result of a Triton kernel is reduced from, and as many as it was made for.

    ``made_for``: the sizes of the call that compiled it, rounded up to a power of two.
    """

    elements: int
    made_for: int | None


def reduction(source: str, passed: Sequence[str]) -> Reduction | None:
    """None for a kernel that reduces nothing, or whose sizes are not known.

    ``passed``: what a launch passed, as written in a trace: of a tensor nothing, of a symbolic size
    its value.
    """
    head, _, body = source.rpartition(JIT)
    if (opened := TRITON_HEAD.search(body)) is None:
        return None
    names = (part.split(":") for part in opened["params"].split(","))
    variable = [name[0].strip() for name in names if "constexpr" not in name[-1]]
    known = dict(zip(variable, passed, strict=False))
    sizes = {name[:-5]: value for name, value in known.items() if name.endswith("numel")}
    sizes |= dict(NUMEL.findall(body))
    reduced = [size for name, size in sizes.items() if name.startswith("r") and name != "r"]
    reduced = reduced or [size for name, size in sizes.items() if name == "r"]  # before torch 2.7
    if not reduced or not all(size.isdecimal() for size in reduced):
        return None
    hints = dict(_HINT.findall(found[1] if (found := _HINTS.search(head)) else ""))
    made = [int(size) for name, size in hints.items() if name.startswith("r")]
    return Reduction(prod(map(int, reduced)), prod(made) if made else None)


class Additions(NamedTuple):
    """Values that a run of a Triton kernel adds to memory with atomics, and to how many places."""

    values: int
    places: int


def additions(source: str) -> Additions | None:
    """Of the atomic addition with the most values for a place; None where that is not known."""
    body = source.rpartition(JIT)[2]
    checked = _checked(body)
    code, found = TritonCode(), list[Additions]()
    for line in body.splitlines():
        code.line(line)
        for _, how, index in code.accesses(line):
            values = code.places(index)[0]
            at = [match for match in _TIMES.finditer(index) if match["name"] in checked]
            if how == "atomic_add" and values and at:
                places = prod(checked[match["name"]] for match in at)
                found.append(Additions(values, places * max(int(m["factor"] or 1) for m in at)))
    return max(found, key=lambda each: each.values / each.places, default=None)


def long_divisions(source: str) -> int:
    """Quotients and remainders of 64-bit integers by a divisor that a Triton kernel loads.

    Of one run, over all elements. A divisor that stands in the source becomes a multiplication
    (https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions); one that is
    only known at run time takes a routine of about a hundred instructions.
    """
    _, jit, body = source.rpartition(JIT)
    kernel = read_kernel(source) if jit else None
    if kernel is None:
        return 0
    dtypes = {pointer.name: pointer.dtype for pointer in kernel.pointers}
    code, long, over, total = TritonCode(), set[str](), dict[str, set[str]](), 0
    for line in body.splitlines():
        code.line(line)
        if (match := _VALUE.match(line)) is None:
            continue
        name, value = match["name"], match["value"]
        loaded = next(code.accesses(value), None)
        names = _TMP.findall(value)
        over[name] = set().union(*(over.get(each, ()) for each in names))
        over[name] |= set().union(*map(code.over, INDEX_NAME.findall(value)))
        retyped = _RETYPED.search(value)
        if loaded is not None:
            is_long = dtypes.get(loaded[0]) == "int64"
        else:
            is_long = retyped[1] == "int64" if retyped else not long.isdisjoint(names)
        if is_long:
            long.add(name)
        if (divided := _DIVIDED.search(value)) and (divided[1] or divided[2]) in long:
            total += code.size(over[name]) or 0
    return total
