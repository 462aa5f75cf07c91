"""How often a generated C++ kernel evaluates a function, and for how many different arguments.

Inductor writes what computes a value into every loop that uses it. Where the value is broadcast, or
used by two loops, an expensive function is evaluated again for the same argument. The shapes are
those of torch/_inductor/codegen/cpp.py, torch 2.6 to 2.13:

    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(512L); x0+=…(1L))
        for(int64_t x1=…(0L); x1<…(1000L); x1+=…(8L))
            if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(1000L)))
                auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + …(x1), …);
                auto tmp2 = tmp0.pow(tmp1);             512 times for each of 1000 elements

A value that is read at shifted places (``torch.roll``) is evaluated once for each shift. Where the
shift wraps around, the load takes several lines:

    auto tmp0 =
    [&]
    {
        for (long x1_inner = 0; x1_inner < static_cast<int64_t>(16); x1_inner++)
            tmpbuf[x1_inner] = in_ptr0[…(384L*x0 + ((…(1L + x1 + x1_inner) % …(384L))))];
        return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
    }
    ()
    ;

A value that is read at a place that was loaded is evaluated for each look-up, though there are no
more values than elements to read, which the index is checked for:

    auto tmp6 = tmp5;
    auto tmp7 = c10::convert<int64_t>(tmp6);
    TORCH_CHECK((0 <= tmp7) & (tmp7 < 256L), "index out of bounds: 0 <= tmp7 < 256L");
    auto tmp9 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x1 + 8L*tmp5), …);
    auto tmp10 = tmp9.erf();
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import ceil, prod

from traceview.torchtext.cpp_loops import FUNCTION, LOOP, NO_FORM, RANGE, VECTOR_FUNCTION
from traceview.torchtext.kernel_source import Repeated

_VALUE = re.compile(r"^\s*auto (?P<name>tmp\d+) =(?: (?P<text>.{1,2000});)?\s*$")
_LOAD = re.compile(r"\b(?P<pointer>\w*ptr\d+)(?:\[| \+ )static_cast<int64_t>\(")
#: A lambda that reads its vector element by element, and does nothing else.
_GATHERED = re.compile(r"\btmpbuf\[\w+\] = (?P<load>\w*ptr\d+\[.{1,2000}\]);")
_NAME = re.compile(r"\btmp\d+\b")
#: A loop's variable, or a place that was loaded and checked: ``t`` and the number of its key.
_VARIABLE = re.compile(r"\b([xt]\d+)(?:_inner|_tail)?\b")
_CHECKED = re.compile(r'TORCH_CHECK\(.{1,500}"index out of bounds: 0 <= (tmp\d+) < (\d{1,18})L?"')
#: Another name of a value: ``tmp5``, ``c10::convert<int64_t>(tmp6)``, a vector's elements.
_COPY = re.compile(r"(?:c10::convert<int64_t>\()?(tmp\d+)\)?")
_COPIED = re.compile(r"\btmpbuf\[\w+\] = static_cast<int64_t>\((tmp\d+)\[\w+\]\);")
#: What may differ at every turn of a loop: sums, random numbers, buffers of one loop.
_VARIES = re.compile(r"_acc\d|buf|_cpu\(")
_MOST_LINES = 40
_WHOLE_VECTOR = re.compile(
    r"at::vec::Vectorized<\w+>::loadu\((\w+)(?:, static_cast<int64_t>\(\d+L?\))?\)"
)
_DEEPEST = 64
#: Calls that the C++ compiler moves out of a loop that they do not depend on. Not a vector's method
#: that goes through its elements, nor what writes (``lgamma`` the sign, ``calc_digamma`` a part).
_MOVED = re.compile(r"std::(?!lgamma)|calc_i[01]e\(")


@dataclass(frozen=True, slots=True)
class _Value:
    """What a ``tmp`` holds: ``key`` is the same for equal expressions, in whatever loops.

    ``variables`` decide which value it is; ``loops`` are those that change any of them.
    """

    key: str
    indices: frozenset[str]
    variables: frozenset[str]
    loops: frozenset[str]

    def span(self, turns: Mapping[str, range]) -> tuple[int, int] | None:
        """First and last place that decides it; None where more than one place or loop does."""
        if len(self.indices) != 1:
            return None
        index = next(iter(self.indices))
        if self.variables - set(_VARIABLE.findall(index)) or "tmp" in index:
            return None
        plain = re.sub(r"\b(\d+)L\b", r"\1", index.replace("static_cast<int64_t>", ""))
        try:
            return _interval(ast.parse(plain, mode="eval").body, turns)
        except (SyntaxError, RecursionError, ValueError):
            return None

    @classmethod
    def of(
        cls,
        text: str,
        values: Mapping[str, _Value],
        keys: dict[str, str],
        loops: frozenset[str],
        places: Mapping[str, range],
    ) -> _Value:
        """The value of ``text`` within ``loops``; of ``[&]`` it may vary."""
        varies = "[&]" in text
        plain = f"{text} {len(keys)}" if varies else text
        indices = []
        for match in reversed(list(_LOAD.finditer(plain))):
            depth, end = 1, match.end()
            while depth and end < len(plain):
                depth += {"(": 1, ")": -1}.get(plain[end], 0)
                end += 1
            index = plain[match.end() : end - 1]
            for name in set(_NAME.findall(index)) & values.keys():
                if (place := _place(values[name])) in places:
                    index = re.sub(rf"\b{name}\b(?:\[x\d+_inner\])?", place, index)
            end += plain.startswith("]", end)
            # A place that is always the same does not decide which value it is.
            decides = _VARIABLE.search(index) is not None
            at = match["pointer"] if decides else f"{match['pointer']}[{index}]"
            indices += [index] if decides else []
            plain = plain[: match.start()] + at + plain[end:]
        used = [
            values[name] for name in _NAME.findall(" ".join((plain, *indices))) if name in values
        ]
        variables = frozenset(_VARIABLE.findall(" ".join((plain, *indices))))
        if varies or _VARIES.search(text):
            variables = loops
        read = [values[name] for name in _NAME.findall(text) if name in values]
        plain = _WHOLE_VECTOR.sub(r"\1", plain)
        whole = _NAME.sub(lambda m: values[m[0]].key if m[0] in values else m[0], plain)
        return cls(
            keys.setdefault(whole, f"#{len(keys)}"),
            frozenset(indices).union(*(value.indices for value in used)),
            variables.union(*(value.variables for value in used)),
            (variables & loops).union(*(value.loops for value in read)),
        )


def repeated(source: str) -> list[Repeated]:
    """Functions that C++ ``source`` evaluates more than once for a value, most repeats first.

    Where the size of a loop is a symbol, nothing.
    """
    scopes: list[tuple[int, dict[str, range | None]]] = []  # depth, variable → its values
    values: dict[str, _Value] = {}
    keys: dict[str, str] = {}
    places: dict[str, range] = {}  # what a place that was loaded is within, by its name
    copies: dict[str, str] = {}
    # Function, its argument, one at a time? → nest of loops → evaluations, different values.
    found: dict[tuple[str, str, bool], dict[int, _Counted]] = defaultdict(dict)
    steps: dict[str, int] = {}
    depth = nest = 0
    lines = source.splitlines()
    for at, line in enumerate(lines):
        if len(scopes) < _DEEPEST:
            if loop := LOOP.search(line):
                nest = nest if scopes else at
                known_range = None if loop["high"] is None else _range(loop)
                steps[loop["name"]] = int(loop["step"] or 1)
                scopes.append((depth, {loop["name"]: known_range}))
            elif ranges := list(RANGE.finditer(line)):
                scopes.append((depth, {match["name"]: _range(match) for match in ranges}))
        turns = {name: values for _, scope in scopes for name, values in scope.items()}
        if (match := _VALUE.match(line)) and turns:
            text, body = match["text"], lines[at + 1 : at + _MOST_LINES]
            copied = _COPY.fullmatch(text) if text else _of_lambda(_COPIED, body)
            copies.pop(match["name"], None)
            if copied:
                copies[match["name"]] = copied[1]
            if not text:  # what it reads if it only gathers elements, else what may vary
                load = _of_lambda(_GATHERED, body)
                text = re.sub(r" \+ x\d+_inner\b", "", load["load"]) if load else "[&]"
            value = _Value.of(text, values, keys, frozenset(turns), places)
            values[match["name"]] = value
            slow = NO_FORM.search(line)
            called = slow or VECTOR_FUNCTION.search(line) or FUNCTION.search(line)
            known = {name: turn for name, turn in turns.items() if turn is not None}
            if called and len(known) == len(turns):
                scalar = slow is not None or "std::" in called[0]
                key = (called[1] or called[2], value.key, scalar)
                counted = found[key].setdefault(nest, _Counted())
                # In a loop over vectors, what is the same for all of one is computed once for it.
                same = (n for n in known if scalar and n in steps and n not in value.variables)
                each = {name: steps[name] for name in same}
                counted.add(value, known, places, each, moved=bool(_MOVED.match(called[0])))
        elif checked := _CHECKED.search(line):
            name: str | None = checked[1]
            while name in values:
                places[_place(values[name])] = range(int(checked[2]))
                name = copies.pop(name, None)
        for sign in re.findall(r"[{}]", line):
            depth += 1 if sign == "{" else -1
            if sign == "}":
                scopes = [scope for scope in scopes if scope[0] < depth]
    result = []
    for (name, _, scalar), nests in found.items():
        evaluations = sum(counted.evaluations for counted in nests.values())
        distinct = max(counted.distinct for counted in nests.values())
        if evaluations > distinct:
            looked_up = any(counted.looked_up for counted in nests.values())
            result.append(Repeated(name, evaluations, distinct, scalar, looked_up))
    return sorted(result, key=lambda one: one.distinct - one.evaluations)


@dataclass(slots=True)
class _Counted:
    """Evaluations for one expression in one nest of loops.

    ``values``: different ones by the loops that each depends on; ``spans``: the places that each
    reads, first and last, None where more than one place decides; ``seen``: the elements that they
    are of.
    """

    evaluations: int = 0
    values: int = 0
    spans: list[tuple[int, int] | None] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)
    looked_up: bool = False

    def add(
        self,
        value: _Value,
        turns: Mapping[str, range],
        places: Mapping[str, range],
        steps: Mapping[str, int],
        *,
        moved: bool,
    ) -> None:
        """One more line that evaluates it, in loops with these ``turns``.

        ``steps`` of those that take several of its values at once. ``places``: what loaded places
        are within. ``moved``: the compiler takes the call out of loops that it does not depend on.
        """
        sizes = [ceil(len(turn) / steps.get(name, 1)) for name, turn in turns.items()]
        last = max((n for n, name in enumerate(turns) if name in value.loops), default=0)
        self.evaluations += prod(sizes[: last + 1] if moved else sizes)
        within = {name: places[name] for name in value.variables if name in places}
        self.looked_up |= bool(within)
        known = {**turns, **within}
        own = {name: turn for name, turn in known.items() if name in value.variables}
        same = value.indices, frozenset(own.items())
        if same not in self.seen:  # another loop may go through the same elements again
            self.seen.add(same)
            self.values += prod(map(len, own.values()))
            self.spans.append(value.span(known))

    @property
    def distinct(self) -> int:
        """Different values, at most."""
        spans = [span for span in self.spans if span is not None]
        if not spans or len(spans) < len(self.spans):
            return self.values
        return min(self.values, 1 + max(high for _, high in spans) - min(low for low, _ in spans))


def _range(match: re.Match[str]) -> range:
    return range(int(match["low"]), int(match["high"]))


def _of_lambda(pattern: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    """What ``pattern`` finds in a lambda that fills its vector by that, and does nothing else."""
    body = "\n".join(takewhile(lambda line: line.strip() != ";", lines))
    found = pattern.search(body)
    return None if body.count("tmpbuf[") > 1 or "mask" in body else found


def _place(value: _Value) -> str:
    return f"t{value.key[1:]}"


def _interval(node: ast.expr, turns: Mapping[str, range]) -> tuple[int, int] | None:
    """Least and largest value of an index; None where it is not a sum of what is known."""
    match node:
        case ast.Constant(value=int(number)):
            return number, number
        case ast.Name(id=name) if turns.get(name):
            return turns[name][0], turns[name][-1]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            found = _interval(inner, turns)
            return found and (-found[1], -found[0])
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _interval(left, turns), _interval(right, turns)
            if one is None or other is None:
                return None
            if isinstance(op, ast.Add):
                return one[0] + other[0], one[1] + other[1]
            if isinstance(op, ast.Mult):
                corners = [a * b for a in one for b in other]
                return min(corners), max(corners)
            if isinstance(op, ast.Mod) and one[0] >= 0 and other[0] == other[1] > 0:
                return one if one[1] < other[0] else (0, other[0] - 1)
    return None
