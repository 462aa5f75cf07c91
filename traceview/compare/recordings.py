"""Two recordings of numbers: where two processes that need not know each other first differ.

Callables are paired, then operators by order; the first whose inputs agree and whose results don't
is where the processes part. What follows from that is not blamed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from traceview.compare.recorded import (
    Apart,
    Call,
    Operator,
    Recording,
    Tensor,
    apart,
    distance,
)

_LEAST_SHARE = 0.1  # of the largest of its kind, below which a result counts as no larger
#: How many times further than with nudged weights a loss curve may go.
_GROWTH, _LOW_CURVE, _CURVE = 10.0, 2e-2, 1e-4
#: Operators that are aligned where two lists of them are not the same.
_MOST_ALIGNED = 3000
_SORTING = (
    "argmax", "argmin", "argsort", "kthvalue", "max", "median", "min", "mode", "sort", "topk",
)  # fmt: skip
Keyed = tuple[tuple[Any, ...], Operator]
Paired = tuple[Operator | None, Operator | None]


# -- two recordings --------------------------------------------------------------------------------


@dataclass
class Compared:
    """What comparing two recordings has found; the keys of ``--json`` (docs/accuracy.md)."""

    differences: list[dict[str, Any]] = field(default_factory=list)
    not_compared: list[dict[str, Any]] = field(default_factory=list)
    callables: list[dict[str, Any]] = field(default_factory=list)

    def skip(self, reason: str, call: Call | None = None, name: str | None = None) -> None:
        """Something can't be compared."""
        known = call.name if call else None
        self.not_compared.append({"callable": known, "name": name, "reason": reason})


def environments(a: Recording, b: Recording) -> list[dict[str, Any]]:
    """What differs between the processes: name, and the values of A and B."""
    one, other = (
        {
            "stance": each.environment.stance,
            "rank": each.environment.rank,
            "world size": each.environment.world_size,
            "device": ", ".join(sorted({t.device for t in each.tensors.values()})) or None,
            **{name.replace("_", " "): v for name, v in each.environment.versions.items()},
            **each.environment.settings,
        }
        for each in (a, b)
    )
    names = dict.fromkeys((*one, *other))
    return [
        {"name": name, "a": one.get(name), "b": other.get(name)}
        for name in names
        if one.get(name) != other.get(name)
    ]


def compare(a: Recording, b: Recording, noise: Recording | None = None) -> Compared:
    """B against A. ``noise``: training steps as A's with weights nudged by a rounding."""
    found = Compared()
    for side, each in (("A", a), ("B", b)):
        for missing in each.missing():
            found.skip(f"{side}: {missing}")
    if a.environment.what != b.environment.what:
        found.skip("one has calls and the other training steps")
    elif a.environment.what == "steps":
        _Curves(found, a, b, noise).compare()
    else:
        # Callables of the same name in their order; what is left over by order.
        pairs, rest, left = [], [], list(b.calls.values())
        for one in a.calls.values():
            same = next((other for other in left if other.name == one.name), None)
            if same is None:
                rest.append(one)
            else:
                left.remove(same)
                pairs.append((one, same))
        for side, others in (("A", rest[len(left) :]), ("B", left[len(rest) :])):
            for call in others:
                found.skip(f"only {side} has recorded it", call)
        for one, other in (*pairs, *zip(rest, left, strict=False)):
            _Calls(found, a, b, one, other).compare()
    return found


class _Calls:
    """One callable."""

    def __init__(self, found: Compared, a: Recording, b: Recording, one: Call, other: Call) -> None:
        self._found, self._a, self._b, self._one, self._other = found, a, b, one, other

    def compare(self) -> None:
        one, other, found = self._one, self._other, self._found
        for side, each in (("A", one), ("B", other)):
            if each.why:
                found.skip(f"{side}: {each.why}", one)
                return
            if each.operators_why:
                found.skip(f"operators of {side}: {each.operators_why}", one)
        inputs = self._results("input", "input", "inputs")
        keys: dict[str, Any] = {"name": one.name, "file": one.file, "line": one.line}
        keys |= {"inputs": inputs, "operators": 0, "first": None, "compared": False}
        found.callables.append(keys)
        if inputs == "differ":
            found.skip("its inputs differ, so nothing after them is compared", one)
            return
        pairs = aligned(_operators(self._a, one), _operators(self._b, other))
        keys["operators"] = sum(x is not None and y is not None for x, y in pairs)
        first = self._first(pairs)
        keys["first"] = first and {k: v for k, v in first.items() if k != "apart"}
        if first is not None and first["excluded"]:
            found.skip(f"{first['excluded']}, so nothing after that is compared", one)
            return
        keys["compared"] = True
        if first is not None:
            found.differences.append(
                self._difference(
                    first["what"],
                    first["name"],
                    first["apart"],
                    **{key: first[key] for key in ("operator", "location", "direction")},
                )
            )
        eager = self._results("eager", "eager", "eager of A, eager of B", first)
        if eager == "differ":
            return
        for side, whose in (("A", one), ("B", other)):
            if whose.compiled_why:
                found.skip(f"compiled of {side}: {whose.compiled_why}", one)
            elif whose.draws:
                found.skip(f"compiled of {side}: it draws random numbers of its own", one)
        if not (other.compiled_why or other.draws):
            self._results("eager", "compiled", "eager of A, compiled of B")
        if not (one.compiled_why or one.draws):
            self._results("compiled", "eager", "compiled of A, eager of B")

    def _results(
        self, side: str, other: str, sides: str, first: Mapping[str, Any] | None = None
    ) -> str:
        """``equal``, ``rounding`` or ``differ``; a difference for each that differs."""
        ours = self._a.results.get((self._one.call, side), {})
        theirs = self._b.results.get((self._other.call, other), {})
        tensors = [self._a.get(each.tensor) for each in ours.values()]
        equal, wrong = True, False
        for name, result in ours.items():
            match = theirs.get(name)
            x = self._a.get(result.tensor)
            y = self._b.get(match.tensor) if match else None
            if match is None:
                unlike: Apart | None = Apart("only in A")
            elif x is None or y is None:
                unlike = None
                if not _same_value(result.value, match.value):
                    unlike = Apart(f"{result.value}, in B {match.value}")
                elif result.value is None:
                    self._found.skip("it was not recorded", self._one, name)
            else:
                kinds = [
                    tensor.rms or 0.0
                    for tensor, each in zip(tensors, ours.values(), strict=True)
                    if tensor is not None and each.what == result.what
                ]
                least = _LEAST_SHARE * max(kinds, default=0.0) if side != "input" else 0.0
                unlike = apart(x, y, self._a.places.get(x.elements, ()), least=least)
                equal = equal and x.digest == y.digest
            if unlike is not None and unlike.whole and side != "input" and self._sorts():
                self._found.skip(
                    "ties: places of values that agree but for rounding", self._one, name
                )
            elif unlike is not None:
                wrong = True
                where = (
                    {key: first[key] for key in ("operator", "location", "direction")}
                    if first
                    else {}
                )
                self._found.differences.append(
                    self._difference(result.what, name, unlike, sides=sides, **where)
                )
        for name in theirs.keys() - ours.keys():
            wrong = True
            whose = self._difference(theirs[name].what, name, Apart("only in B"), sides=sides)
            self._found.differences.append(whose)
        return "differ" if wrong else "equal" if equal else "rounding"

    def _sorts(self) -> bool:
        return any(map(_is_sorting, self._a.operators.get(self._one.call, ())))

    def _first(self, pairs: Sequence[Paired]) -> dict[str, Any] | None:
        """The first operator whose inputs agree and whose results don't."""
        alone: list[str] = []
        tied: str | None = None
        for number, (x, y) in enumerate(pairs):
            if x is None or y is None:
                alone.append(f"{'A' if y is None else 'B'}: {(x or y).name}")  # type: ignore[union-attr]
                continue
            unlike, exact = self._tensors(x.inputs, y.inputs)
            # Inputs that differ, or are filled at random, may be what lay in memory, of any size.
            reads = x.inputs if unlike is None and not x.random else ()
            differ, _ = self._tensors(x.outputs, y.outputs, loose=not exact, reads=reads)
            if differ is None:
                continue
            if unlike is None and differ.whole and (not exact or _is_sorting(x)):
                tied = tied or x.name
                continue
            excluded = f"{x.name} draws other random numbers" if x.random else None
            if tied is not None and unlike is not None:
                excluded = f"{tied} gives other places of values that agree but for rounding (ties)"
            keys = {
                "operator": x.name,
                "number": number,
                "location": {"file": x.file, "line": x.line} if x.file else None,
                "direction": x.direction,
                "excluded": excluded,
                "what": "operator",
                "name": x.name,
                "apart": differ,
                "unpaired": alone[:8],
            }
            if unlike is not None:  # what made these is in no recording, or runs on one side only
                keys |= {"what": "operator input", "apart": unlike}
            return keys
        return None

    def _tensors(
        self,
        ours: Sequence[int | None],
        theirs: Sequence[int | None],
        *,
        loose: bool = False,
        reads: Sequence[int | None] = (),
    ) -> tuple[Apart | None, bool]:
        """The first that differs, and whether all are the same to the bit."""
        exact = True
        sizes = [each.rms or 0.0 for each in map(self._a.get, reads) if each is not None]
        for one, other in zip(ours, theirs, strict=False):
            x, y = self._a.get(one), self._b.get(other)
            if x is None or y is None:
                exact = False
                continue
            exact = exact and x.digest == y.digest
            least = _LEAST_SHARE * max(sizes, default=0.0) if x.error is None else 0.0
            unlike = apart(x, y, self._a.places.get(x.elements, ()), least=least, loose=loose)
            if unlike is not None:
                return unlike, False
        return None, exact

    def _difference(
        self,
        what: str | None,
        name: str,
        unlike: Apart,
        *,
        sides: str = "eager of A, eager of B",
        operator: str | None = None,
        location: Mapping[str, Any] | None = None,
        direction: str | None = None,
    ) -> dict[str, Any]:
        one = self._one
        place = {"file": one.file, "line": one.line}
        return difference(what, name, unlike) | {
            "callable": one.name,
            "callable_location": place,
            "operator": operator,
            "location": location or place,
            "direction": direction,
            "sides": sides,
        }


def difference(what: str | None, name: str, unlike: Apart) -> dict[str, Any]:
    """A difference with the keys that every one has."""
    worst = unlike.worst
    return {
        "what": what,
        "name": name,
        "callable": None,
        "callable_location": None,
        "stage": None,
        "direction": None,
        "operator": None,
        "location": None,
        "relative_error": unlike.relative_error,
        "eager_error": unlike.eager_error,
        "reason": unlike.reason,
        "worst": {"element": worst[0], "a": worst[1], "b": worst[2]} if worst else None,
        "sides": None,
        "script": None,
    }


def _is_sorting(operator: Operator) -> bool:
    return operator.name.removeprefix("aten.").partition(".")[0] in _SORTING


def _same_value(one: str | None, other: str | None) -> bool:
    """Whether simple values are the same; numbers (``loss.item()``) but for rounding."""
    try:
        return math.isclose(float(one or ""), float(other or ""), rel_tol=_CURVE, abs_tol=_CURVE)
    except ValueError:
        return one == other


def _operators(recording: Recording, call: Call) -> list[Keyed]:
    """Those of a call, with what has to be the same of two that are compared."""

    def shapes(numbers: Sequence[int | None]) -> tuple[tuple[int, ...] | None, ...]:
        known = map(recording.get, numbers)
        return tuple(tuple(each.shape) if each is not None else None for each in known)

    return [
        ((each.name, each.direction, shapes(each.inputs), shapes(each.outputs)), each)
        for each in recording.operators.get(call.call, ())
    ]


def aligned(ours: Sequence[Keyed], theirs: Sequence[Keyed]) -> list[Paired]:
    """Pairs of operators with the same keys in their order; None where one side has no such."""
    one, other = ([key for key, _ in side] for side in (ours, theirs))
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    pairs: list[Paired] = [
        (x, y) for (_, x), (_, y) in zip(ours[:same], theirs[:same], strict=True)
    ]
    stop = same + _MOST_ALIGNED
    left, right = ([each for _, each in side[same:stop]] for side in (ours, theirs))
    matcher = SequenceMatcher(None, one[same:stop], other[same:stop], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            pairs += zip(left[i:i_end], right[j:j_end], strict=True)
        else:
            pairs += [(each, None) for each in left[i:i_end]]
            pairs += [(None, each) for each in right[j:j_end]]
    return pairs


class _Curves:
    """Training steps."""

    def __init__(
        self, found: Compared, a: Recording, b: Recording, noise: Recording | None
    ) -> None:
        self._found, self._a, self._b, self._noise = found, a, b, noise

    def compare(self) -> None:
        a, b, found = self._a, self._b, self._found
        for name, unlike in self._unlike("input", {}):
            found.skip(
                f"excluded: the {'data' if 'argument' in name else 'weights'} differ at the"
                f" start ({name}: {unlike.reason or f'relative error {unlike.relative_error:.2g}'})"
            )
            return
        count = min(len(a.steps), len(b.steps))
        if not count:
            found.skip("no optimizer step was seen")
            return
        if len(a.steps) != len(b.steps):
            found.skip(f"A has {len(a.steps)} steps and B {len(b.steps)}")
        same = next((n for n in range(count) if self._data_differ(n)), count)
        if same < count:
            found.skip(f"excluded: the data differ from step {same + 1} on")
        keys = {"name": "training steps", "file": None, "line": None, "operators": 0}
        found.callables += (
            [keys | {"inputs": "equal", "first": None, "compared": True, "steps": same}]
            if same
            else []
        )
        self._losses(same)
        if same == len(a.steps) == len(b.steps):
            slack = (
                {
                    name: _GROWTH * distance(x.values, y.values)
                    for name, x, y in self._pairs(a, self._noise, "end")
                }
                if self._noise
                else {}
            )
            for name, unlike in self._unlike("end", slack):
                what = a.results[0, "end"][name].what
                found.differences.append(difference(what, f"{name} after step {same}", unlike))

    def _losses(self, count: int) -> None:
        """The first step at which the curves part."""
        a, b = self._a.steps, self._b.steps
        nudged = self._noise.steps if self._noise else []
        known = [x for step in a[:count] for x in step.losses if x is not None]
        scale = max(map(abs, known), default=0.0)
        grown = 0.0
        for n in range(count):
            tolerance = _LOW_CURVE if a[n].low or b[n].low else _CURVE
            if n < len(nudged):
                grown = max(grown, distance(a[n].losses, nudged[n].losses))
            limit = _GROWTH * grown + tolerance * scale * (1 if nudged else n + 1)
            if len(a[n].losses) != len(b[n].losses):
                unlike = Apart(f"{len(a[n].losses)} backwards, in B {len(b[n].losses)}")
            else:
                odd = [x is None for x in a[n].losses] != [x is None for x in b[n].losses]
                off = distance(a[n].losses, b[n].losses)
                if not odd and off <= limit:
                    continue
                x, y = next(
                    ((x, y) for x, y in zip(a[n].losses, b[n].losses, strict=True) if x != y)
                )
                worst = ([n], x, y) if x is not None and y is not None else None
                reason = "NaN or infinite on one side" if odd else None
                unlike = Apart(reason, off / (scale or 1.0), grown / (scale or 1.0), worst)
            made = difference("loss", f"loss of step {n + 1}", unlike)
            self._found.differences.append(made)
            return

    def _data_differ(self, number: int) -> bool:
        a, b = self._a, self._b
        ours, theirs = a.steps[number].inputs, b.steps[number].inputs
        pairs = [(a.get(x), b.get(y)) for x, y in zip(ours, theirs, strict=False)]
        return len(ours) != len(theirs) or any(
            x is not None and y is not None and apart(x, y) is not None for x, y in pairs
        )

    def _unlike(self, side: str, slack: Mapping[str, float]) -> Iterator[tuple[str, Apart]]:
        for name, x, y in self._pairs(self._a, self._b, side):
            places = self._a.places.get(x.elements, ())
            unlike = apart(x, y, places, slack=slack.get(name, 0.0))
            if unlike is not None:
                yield name, unlike

    def _pairs(
        self, a: Recording, b: Recording | None, side: str
    ) -> Iterator[tuple[str, Tensor, Tensor]]:
        others = b.results.get((0, side), {}) if b else {}
        for name, result in a.results.get((0, side), {}).items():
            x = a.get(result.tensor)
            y = b.get(others[name].tensor) if b and name in others else None
            if x is not None and y is not None:
                yield name, x, y
