"""How often a generated C++ kernel evaluates a function, and for how many different arguments.

Inductor writes what computes a value into every loop that uses it. Where the value is broadcast, or
used by two loops, an expensive function is evaluated again for the same argument. The shapes are
those of torch/_inductor/codegen/cpp.py, torch 2.6 to 2.13:

    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(512L); x0+=…(1L))
        for(int64_t x1=…(0L); x1<…(1000L); x1+=…(8L))
            if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(1000L)))
                auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + …(x1), …);
                auto tmp2 = tmp0.pow(tmp1);             512 times for each of 1000 elements
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from math import prod

from traceview.torchtext.cpp_loops import FUNCTION, LOOP, VECTOR_FUNCTION

_RANGE = re.compile(
    r"(?P<name>x\d+) >= static_cast<int64_t>\((?P<low>\d{1,18})L?\) && "
    r"(?P=name) < static_cast<int64_t>\((?P<high>\d{1,18})L?\)"
)
_VALUE = re.compile(r"^\s*auto (?P<name>tmp\d+) =(?: (?P<text>.{1,2000});)?\s*$")
_LOAD = re.compile(
    r"\b(?P<pointer>\w*ptr\d+)(?:\[| \+ )static_cast<int64_t>\((?P<index>.{1,500}?)\)(?:\]|, |\))"
)
_NAME = re.compile(r"\btmp\d+\b")
_VARIABLE = re.compile(r"\b(x\d+)(?:_inner|_tail)?\b")
#: What may differ at every turn of a loop: sums, random numbers, buffers of one loop.
_VARIES = re.compile(r"_acc\d|buf|_cpu\(")
_TERM = re.compile(r"(?:(?P<factor>\d{1,18})L?\*)?(?P<name>x\d+)|\d{1,18}L?")
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Repeated:
    """A function that one run of a kernel evaluates ``evaluations`` times for ``distinct`` values.

    ``scalar``: most of them one element at a time.
    """

    function: str
    evaluations: int
    distinct: int
    scalar: bool


@dataclass(frozen=True, slots=True)
class _Value:
    """What a ``tmp`` holds: ``key`` is the same for equal expressions, in whatever loops."""

    key: str
    indices: frozenset[str]
    variables: frozenset[str]


def repeated(source: str) -> list[Repeated]:
    """Functions that C++ ``source`` evaluates more than once for a value, most repeats first.

    Where the size of a loop is a symbol, nothing.
    """
    scopes: list[tuple[int, dict[str, int | None]]] = []  # depth, variable → how many values
    values: dict[str, _Value] = {}
    keys: dict[str, str] = {}
    # Function, its argument, one at a time? → nest of loops → evaluations, different values.
    found: dict[tuple[str, str, bool], dict[int, list[int]]] = defaultdict(dict)
    depth = nest = 0
    for at, line in enumerate(source.splitlines()):
        if len(scopes) < _DEEPEST:
            if loop := LOOP.search(line):
                nest = nest if scopes else at
                size = None if loop["high"] is None else int(loop["high"]) - int(loop["low"])
                scopes.append((depth, {loop["name"]: size}))
            elif ranges := list(_RANGE.finditer(line)):
                scopes.append((depth, {m["name"]: int(m["high"]) - int(m["low"]) for m in ranges}))
        sizes = {name: size for _, scope in scopes for name, size in scope.items()}
        if (match := _VALUE.match(line)) and sizes:
            value = _value(match["text"], values, keys, frozenset(sizes))
            values[match["name"]] = value
            called = VECTOR_FUNCTION.search(line) or FUNCTION.search(line)
            known = {name: size for name, size in sizes.items() if size is not None}
            if called and len(known) == len(sizes):
                scalar = "std::" in called[0]
                # The C++ compiler moves a scalar call out of loops that it does not depend on.
                last = max(
                    (n for n, name in enumerate(known) if name in value.variables), default=0
                )
                loops = list(known.values())[: last + 1] if scalar else list(known.values())
                sums = found[called[1], value.key, scalar].setdefault(nest, [0, 0])
                sums[0], sums[1] = sums[0] + prod(loops), sums[1] + _distinct(value, known)
        for sign in re.findall(r"[{}]", line):
            depth += 1 if sign == "{" else -1
            if sign == "}":
                scopes = [scope for scope in scopes if scope[0] < depth]
    result = []
    for (name, _, scalar), nests in found.items():
        evaluations = sum(times for times, _ in nests.values())
        distinct = max(different for _, different in nests.values())
        if evaluations > distinct:
            result.append(Repeated(name, evaluations, distinct, scalar))
    return sorted(result, key=lambda one: one.distinct - one.evaluations)


def _value(
    text: str | None, values: dict[str, _Value], keys: dict[str, str], loops: frozenset[str]
) -> _Value:
    """The value of ``text`` within ``loops``; None: it takes several lines, and may vary."""
    text = text or f"[&] {len(keys)}"
    used = [values[name] for name in _NAME.findall(text) if name in values]
    indices = frozenset(match["index"] for match in _LOAD.finditer(text))
    variables = frozenset(_VARIABLE.findall(text))
    if _VARIES.search(text) or "[&]" in text:
        variables = loops
    plain = _LOAD.sub(lambda match: match["pointer"], text)
    whole = _NAME.sub(lambda m: values[m[0]].key if m[0] in values else m[0], plain)
    return _Value(
        keys.setdefault(whole, f"#{len(keys)}"),
        indices.union(*(value.indices for value in used)),
        variables.union(*(value.variables for value in used)),
    )


def _distinct(value: _Value, sizes: dict[str, int]) -> int:
    """How many values at most: by the loops that it depends on, or the places of its one index."""
    most = prod(size for name, size in sizes.items() if name in value.variables)
    if len(value.indices) != 1:
        return most
    terms = [_TERM.fullmatch(term) for term in next(iter(value.indices)).split(" + ")]
    if not all(terms) or value.variables - {term["name"] for term in terms if term}:
        return most
    factors = {term["name"]: int(term["factor"] or 1) for term in terms if term and term["name"]}
    places = 1 + sum(
        (sizes[name] - 1) * factor for name, factor in factors.items() if name in sizes
    )
    return min(most, places)
