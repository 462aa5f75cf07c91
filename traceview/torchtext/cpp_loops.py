"""Why a generated C++ kernel is slow, read from its source: what it computes one at a time.

Functions are what counts: a loop that loads and adds is as fast as memory, whatever its form, but
one ``std::tanh`` takes as long as ATen's vector code takes for a register full. The shapes are
those of torch/_inductor/codegen/cpp.py and cpp_prefix.h, torch 2.6 to 2.13:

    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(768L); x1+=…(1L))
        auto tmp1 = in_ptr0[…((static_cast<int64_t>(767L + x1) % static_cast<int64_t>(768L)))];
        auto tmp10 = std::tanh(tmp9);           a loop without vectors
    tmpbuf_out[i] = calc_i1e(tmpbuf0[i]);       a function without a vector form
    auto tmp1 = tmp0.erfinv();                  another: ATen calls it element by element
    result[offset_idx] = randn_cpu(tmp0, offset[offset_idx]);
    auto tmp0 = in_ptr0[…(x0 + ks1*((static_cast<int64_t>(x1) % static_cast<int64_t>(ks0))))];
    auto tmp0 = in_ptr0[…(255L + ((-1L)*std::abs((-2L) + x1)))];        a reflected edge
    auto tmp2 = at::vec::VecMask<float,1>(tmp0 == tmp1);
    tmp2.store(out_ptr8 + …, …(16));            a mask, each element converted alone
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from math import prod

RANDOM = "random"
NO_VECTOR_FORM = "no_vector_form"
WRAPPED = "wrapped_index"
FEW_ELEMENTS = "few_elements"
STRIDED = "strided"
LOADED_INDEX = "loaded_index"
REVERSED = "reversed_index"
MASKS = "masks"
OTHER_DTYPE = "other_dtype"
#: In place of a function's name, where a loop calls none.
ARITHMETIC = "arithmetic"
NOT_VECTORIZED = "not_vectorized"
SYMBOLIC_INDEX = "symbolic_index"

LOOP = re.compile(
    r"for\s*\(int64_t (?P<name>\w+)=static_cast<int64_t>\((?P<low>\d{1,18})L?\); (?P=name)<"
    r"static_cast<int64_t>\((?:(?P<high>\d{1,18})L?\)|.)"
    r"(?:[^;]{0,200}; ?(?P=name)\+=\(?static_cast<int64_t>\((?P<step>\d{1,9})L?\))?"
)
#: Of a loop's turns, those in which a part of its body runs: whole vectors, then the tail.
RANGE = re.compile(
    r"(?P<name>x\d+) >= static_cast<int64_t>\((?P<low>\d{1,18})L?\) && "
    r"(?P=name) < static_cast<int64_t>\((?P<high>\d{1,18})L?\)"
)
RANDOM_NUMBER = re.compile(r"\b(normalized_rand|randn|randint64)_cpu\(")
#: Without vector code: ``calc_i1e(x)``, and methods of vectors that go through their elements.
NO_FORM = re.compile(r"\bcalc_(\w+)\(|\.(erfinv|digamma|i0e?|igammac?)\(")
FUNCTION = re.compile(
    r"\bstd::(acosh?|asinh?|atan[2h]?|cosh?|erfc?|exp2?|expm1|lgamma|log(?:10|1p|2)?|pow|sinh?"
    r"|tanh?)\("
)
VECTOR_FUNCTION = re.compile(
    r"\.(acosh?|asinh?|atan[2h]?|cosh?|erfc?|f?exp\w{0,4}|expm1|lgamma|log\w{0,3}|pow|sinh?|tanh?)\("
)
#: A value, or a place, that takes a division for each element; a constant divisor takes none.
_DIVIDES = re.compile(
    r"^\s*(?:auto tmp\d+ = |\w*ptr\d+\[)(?=.{0,2000}\bks\d+)"
    r".{0,2000}(?: % |\bdiv_floor_integer\(|\bdiv_mod\()",
    re.MULTILINE,
)
_INDEX = re.compile(r"_ptr\d+\[static_cast<int64_t>\((?P<index>.{1,2000})\)\]")
_FACTOR = r"(?<![\w.])(\d{{1,18}})L?\*{name}\b"
#: A pointer to bools.
_BOOLS = re.compile(r"\bbool\*\s*(?:__restrict__\s*)?(\w+)")
STORED, READ = "VecMask::store", "VecMask::from"
#: Backwards, or folded at an edge: flip, and F.pad with reflection or replication.
_BACKWARDS = r"\(-\d{{1,18}}L\)\*{name}\b"
_FOLDS = re.compile(r"\bstd::(?:abs|min|max)$")
#: Types of values that Inductor has no vectors of (torch/_inductor/codegen/cpp.py).
_NO_VECTORS = re.compile(r"\b(?:int16_t|uint16_t|uint32_t|uint64_t)\* (\w+)")
_LOADED = re.compile(r"\btmp\d+\b")
_RANDOM_NAMES = {"normalized_rand": "rand", "randn": "randn", "randint64": "randint"}
#: A loop this short fills no register: Inductor leaves it as it is.
_FEW = 8
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """Functions that a kernel evaluates one element at a time, for one reason.

    ``evaluations`` of them in one run of the kernel, None where a size is not known; ``length`` of
    the innermost loop where that is the reason.
    """

    why: str
    functions: tuple[str, ...]
    evaluations: int | None
    length: int | None = None


@dataclass(slots=True)
class _Open:
    """A loop that is open, or a part of its turns (no ``step``): a number or None, a symbol."""

    depth: int
    name: str
    size: int | None
    step: int | None


def one_at_a_time(source: str) -> list[OneAtATime]:
    """What C++ ``source`` evaluates one element at a time, most evaluations first.

    Nothing where vectors do most of such work, and for what is not C++.
    """
    # Reason and length → function → evaluations.
    found: dict[tuple[str, int | None], dict[str, int | None]] = defaultdict(dict)
    in_vectors, depth = 0, 0
    read = re.compile(rf"= (?:{'|'.join(_NO_VECTORS.findall(source)) or '(?!)'})\[")
    masks = "|".join(_BOOLS.findall(source)) or "(?!)"
    mask = re.compile(rf"\.store\((?:{masks})\b|(VecMask<[^>]{{1,40}}>::from)\((?:{masks})\b")
    loops: list[_Open] = []
    parts: list[_Open] = []
    lines = source.splitlines()
    for at, line in enumerate(lines):
        if (match := LOOP.search(line)) and len(loops) < _DEEPEST:
            high, step = match["high"], match["step"]
            size = None if high is None else max(0, int(high) - int(match["low"]))
            loops.append(_Open(depth, match["name"], size, int(step) if step else None))
        for part in RANGE.finditer(line):
            parts.append(_Open(depth, part["name"], int(part["high"]) - int(part["low"]), None))
        within = {part.name: part.size for part in parts}
        sizes = [within.get(loop.name, loop.size) for loop in loops]
        times = prod(size for size in sizes if size is not None) if None not in sizes else None
        if loops:
            if called := RANDOM_NUMBER.search(line):
                _add(found[RANDOM, None], _RANDOM_NAMES[called[1]], times)
            elif called := NO_FORM.search(line):
                _add(found[NO_VECTOR_FORM, None], called[1] or called[2], times)
            elif called := FUNCTION.search(line):
                inner = loops[-1]
                if inner.step == 1 or (inner.size or 2) <= 1:
                    _add(found[_reason(lines, at, inner)], called[1], times)
            elif called := mask.search(line):
                _add(found[MASKS, None], READ if called[1] else STORED, times)
            elif VECTOR_FUNCTION.search(line):
                in_vectors += (times or 0) // (loops[-1].step or 1)
            elif loops[-1].step == 1 and read.search(line):
                _add(found[OTHER_DTYPE, None], ARITHMETIC, None)
        for sign in re.findall(r"[{}]", line):
            depth += 1 if sign == "{" else -1
            if sign == "}":
                loops = [loop for loop in loops if loop.depth < depth]
                parts = [part for part in parts if part.depth < depth]
    if len(converted := found.get((OTHER_DTYPE, None), {})) > 1:
        converted.pop(ARITHMETIC, None)  # functions take longer, and are counted
    result = []
    for (why, length), functions in found.items():
        counts = [count for count in functions.values() if count is not None]
        total = sum(counts) if len(counts) == len(functions) else None
        names = sorted(functions, key=lambda name: -(functions[name] or 0))
        result.append(OneAtATime(why, tuple(names), total, length))
    if in_vectors > sum(fact.evaluations or in_vectors for fact in result):
        return []
    return sorted(result, key=lambda fact: -(fact.evaluations or 0))


def turns_back(index: str, name: str) -> bool:
    """Whether an index goes backwards with the variable ``name``, or turns back at an edge."""
    if re.search(_BACKWARDS.format(name=name), index):
        return True
    for match in re.finditer(rf"\b{name}\b", index):
        closed = 0
        for at in range(match.start() - 1, -1, -1):  # the calls around it, from the inside
            closed += {")": 1, "(": -1}.get(index[at], 0)
            if closed < 0:
                if _FOLDS.search(index[:at]):
                    return True
                closed = 0
    return False


def divides_by_sizes(source: str) -> bool:
    """Whether C++ ``source`` finds its places by divisions with sizes that are symbols."""
    return _DIVIDES.search(source) is not None


def _add(functions: dict[str, int | None], name: str, times: int | None) -> None:
    before = functions.get(name, 0)
    functions[name] = None if before is None or times is None else before + times


def _reason(lines: list[str], at: int, loop: _Open) -> tuple[str, int | None]:
    """Why ``loop``, whose body has line ``at``, was not vectorized, and its length if that is it.

    Inductor does not say: it is what stands in the loop that a vector load cannot do.
    """
    start = next(n for n in range(at, -1, -1) if f"int64_t {loop.name}=" in lines[n])
    end = at
    while end + 1 < len(lines) and "for(" not in lines[end + 1]:
        end += 1
    accesses = [
        match["index"] for line in lines[start : end + 1] for match in _INDEX.finditer(line)
    ]
    mine = [index for index in accesses if re.search(rf"\b{loop.name}\b", index)]
    if any("%" in index or "div_floor" in index for index in mine):
        return WRAPPED, None
    if any(_LOADED.search(index) for index in accesses):
        return LOADED_INDEX, None
    if any(turns_back(index, loop.name) for index in mine):
        return REVERSED, None
    if loop.size is not None and 1 < loop.size <= _FEW:
        return FEW_ELEMENTS, loop.size
    strides = [m for index in mine for m in re.findall(_FACTOR.format(name=loop.name), index)]
    few = {int(stride) for stride in strides if 1 < int(stride) <= _FEW}
    if few:
        return FEW_ELEMENTS, max(few)
    if strides:
        return STRIDED, None
    body = "".join(lines[start : end + 1])
    if any(f"{name}[" in body for name in _NO_VECTORS.findall("\n".join(lines[:start]))):
        return OTHER_DTYPE, None
    return NOT_VECTORIZED, None
