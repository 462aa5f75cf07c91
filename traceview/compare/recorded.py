"""A recording of numbers as it is read: rows of JSON that others wrote, of any size.

docs/run-folder.md has the form. Two tensors are compared by digest, else by values at the same
places, sums of the same parts and extremes, within what dtype and eager's error allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from traceview import limits
from traceview.errors import NothingToAnalyse
from traceview.json_errors import NOT_JSON

FORMAT = 1
#: As in the comparison within a process: torch's own tolerances, and what eager's error may be
#: exceeded by.
_TOLERANCES = {"float64": 1e-6, "complex128": 1e-6, "bfloat16": 1e-2, "float16": 1e-2}
_TOLERANCE, _TIMES, _ALONE = 1e-4, 3.0, 3.0
#: Part of the values that no rounding reaches where nothing is known of how inputs' roundings grow.
_WRONG_SHARE = 0.05
Number = float | None
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Environment(msgspec.Struct, tag="environment", tag_field="kind"):
    """The first row: what the process ran in."""

    format: Count
    what: str
    stance: str | None = None
    rank: int | None = None
    world_size: int | None = None
    versions: dict[str, str | int | None] = {}
    settings: dict[str, str] = {}


class Places(msgspec.Struct, tag="places", tag_field="kind"):
    """Where the values of tensors of a size are from."""

    elements: Count
    at: list[Count]


class Tensor(msgspec.Struct, tag="tensor", tag_field="kind"):
    """What is recorded of a tensor; ``error`` is the distance of its values from float64's."""

    tensor: Count
    dtype: str
    shape: list[Count]
    strides: list[int] | None
    device: str
    elements: Count
    digest: str
    values: list[Number]
    sums: list[Number] = []
    rms: Number = None
    low: Number = None
    high: Number = None
    nan: Count = 0
    infinite: Count = 0
    error: Number = None


class Result(msgspec.Struct, tag="result", tag_field="kind"):
    """What goes into a call (``side`` input) or comes out of it (eager, compiled, end)."""

    call: Count
    side: str
    name: str
    what: str | None = None
    tensor: Count | None = None
    value: str | None = None


class Operator(msgspec.Struct, tag="operator", tag_field="kind"):
    """One operator of the eager run, in order."""

    call: Count
    name: str
    inputs: list[Count | None]
    outputs: list[Count | None]
    direction: str = "forward"
    file: str | None = None
    line: int | None = None
    random: bool = False


class Call(msgspec.Struct, tag="call", tag_field="kind"):
    """A compiled callable's first call; ``why`` it was not recorded."""

    call: Count
    name: str
    file: str | None = None
    line: int | None = None
    weights: str = "first"
    draws: bool | None = None
    why: str | None = None
    compiled_why: str | None = None
    operators_why: str | None = None


class Step(msgspec.Struct, tag="step", tag_field="kind"):
    """An optimizer step: tensors that its first call was given, and losses."""

    step: Count
    inputs: list[Count | None]
    losses: list[Number]
    low: bool = False


class End(msgspec.Struct, tag="end", tag_field="kind"):
    """The last row."""

    left_out: dict[str, int]


_ROW = msgspec.json.Decoder(Environment | Places | Tensor | Result | Operator | Call | Step | End)


@dataclass
class Recording:
    """One file. ``unreadable``: rows that could not be read; ``whole``: its last row is there."""

    path: Path
    environment: Environment
    tensors: dict[int, Tensor] = field(default_factory=dict)
    places: dict[int, list[int]] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    results: dict[tuple[int, str], dict[str, Result]] = field(default_factory=dict)
    operators: dict[int, list[Operator]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    whole: bool = False

    def get(self, number: int | None) -> Tensor | None:
        """The tensor of a number."""
        return self.tensors.get(number) if number is not None else None

    def missing(self) -> Iterator[str]:
        """What is not in the file, in words."""
        if self.left_out:
            said = ", ".join(f"{count} {kind} rows" for kind, count in self.left_out.items())
            yield f"{said} did not fit into the recording or could not be read from a tensor"
        if self.unreadable:
            yield f"{self.unreadable} rows of the recording are damaged"
        if not self.whole:
            yield "the end of the recording is missing"

    def add(self, row: Any) -> bool:  # noqa: ANN401 - any row
        """Take a row in; whether it is the last one."""
        if isinstance(row, Tensor):
            self.tensors[row.tensor] = row
        elif isinstance(row, Places):
            self.places[row.elements] = row.at
        elif isinstance(row, Call):
            self.calls[row.call] = row
        elif isinstance(row, Step):
            self.steps.append(row)
        elif isinstance(row, Operator):
            self.operators.setdefault(row.call, []).append(row)
        elif isinstance(row, Result):
            self.results.setdefault((row.call, row.side), {})[row.name] = row
        elif isinstance(row, End):
            self.left_out = row.left_out
            return True
        return False


def read(path: Path) -> Recording:
    """The recording in a file; NothingToAnalyse if it is none."""
    made: Recording | None = None
    unreadable, whole, left = 0, False, limits.now.memory // 4
    try:
        with path.open("rb") as file:
            while line := file.readline(min(left, limits.now.record) + 1):
                left -= len(line)
                if left < 0:
                    break
                try:
                    limits.check_depth(line)
                    row = _ROW.decode(line)
                except NOT_JSON:
                    unreadable += 1
                    continue
                if made is None and isinstance(row, Environment) and row.format == FORMAT:
                    made = Recording(path, row)
                elif made is not None:
                    whole = made.add(row) or whole
    except OSError as error:
        fact = f"{path} can't be read ({error.strerror or error})."
        raise NothingToAnalyse(fact, "Check its permissions.", slug="unreadable") from error
    if made is None:
        fact = f"{path} is no recording of numbers."
        remedy = "Name a run folder that `traceview accuracy SCRIPT` made, or a file in accuracy/."
        raise NothingToAnalyse(fact, remedy, slug="no-recording")
    made.unreadable, made.whole = unreadable, whole
    return made


# -- two tensors -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Apart:
    """How two tensors differ beyond rounding; ``worst``: place, and the values there.

    ``whole``: they are whole numbers or truth values, which may be places of equal values.
    """

    reason: str | None = None
    relative_error: float | None = None
    eager_error: float | None = None
    worst: tuple[list[int], float, float] | None = None
    whole: bool = False


def apart(
    a: Tensor,
    b: Tensor,
    places: Sequence[int] = (),
    *,
    least: float = 0.0,
    loose: bool = False,
    slack: float = 0.0,
) -> Apart | None:
    """None if they agree but for rounding.

    ``least``: the size below which values count as no larger; ``loose``: their inputs are not the
    same to the bit; ``slack``: how far apart they may be besides.
    """
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return Apart(f"{a.dtype}{a.shape}, in B {b.dtype}{b.shape}")
    if a.digest == b.digest:
        return None
    if (a.nan, a.infinite) != (b.nan, b.infinite):
        return Apart(f"{_odd(a)}, in B {_odd(b)}")
    if [x is None for x in a.values] != [x is None for x in b.values]:
        return Apart("NaN or infinite at other places")
    pairs = [
        (n, x, y)
        for n, (x, y) in enumerate(zip(a.values, b.values, strict=False))
        if x is not None and y is not None
    ]
    if not a.dtype.startswith(("float", "bfloat", "complex")):
        unlike = [each for each in pairs if each[1] != each[2]]
        said = (
            f"{len(unlike)} of {len(pairs)} recorded elements differ" if unlike else "they differ"
        )
        return Apart(said, worst=_worst(a, unlike, places), whole=True)
    tolerance = _TOLERANCES.get(a.dtype, _TOLERANCE)
    scale = max(a.rms or 0.0, b.rms or 0.0)
    size = max(scale, least)
    errors = [each.error for each in (a, b) if each.error is not None]
    limit = _ALONE * tolerance * size
    if errors:  # where the better one has no digit right (what should be 0), both are roundings
        noise = min(errors) > tolerance * scale
        limit = _TIMES * (max(errors) if noise else min(errors)) + tolerance * size / 10
    if loose and not errors:
        limit = max(limit, _WRONG_SHARE * size)
    limit += slack
    off = distance([x for _, x, _ in pairs], [y for _, _, y in pairs])
    near = tolerance * (min(1.0, scale) if scale else size)
    close = all(abs(x - y) <= near + tolerance * abs(y) for _, x, y in pairs)
    wide = max(limit, tolerance * size)
    near_enough = close or off <= limit
    if near_enough and _alike(a, b, wide, tolerance):
        return None
    eager = min(errors) / scale if errors and scale else None
    reason = "sums of its parts or its extremes differ" if near_enough else None
    return Apart(reason, off / (scale or 1.0), eager, _worst(a, pairs, places))


def _alike(a: Tensor, b: Tensor, wide: float, tolerance: float) -> bool:
    """Whether sums and extremes, which values at some places don't show, differ by roundings."""
    part = max(1.0, a.elements / max(1, len(a.sums)))
    sums = zip(a.sums, b.sums, strict=False)
    if any(abs((x or 0.0) - (y or 0.0)) > 10 * wide * math.sqrt(part) for x, y in sums):
        return False
    ends = ((a.low or 0.0, b.low or 0.0), (a.high or 0.0, b.high or 0.0))
    return all(abs(x - y) <= 30 * wide + 10 * tolerance * abs(x) for x, y in ends)


def _odd(tensor: Tensor) -> str:
    return f"{tensor.nan} NaN and {tensor.infinite} infinite values"


def _worst(
    tensor: Tensor, pairs: Sequence[tuple[int, float, float]], places: Sequence[int]
) -> tuple[list[int], float, float] | None:
    """Of values at ``places``, or of all, those furthest apart: their place, and what they are."""
    if not pairs:
        return None
    number, x, y = max(pairs, key=lambda each: abs(each[1] - each[2]))
    at = places[number] if number < len(places) else number
    sizes = [*tensor.shape, 2] if tensor.dtype.startswith("complex") else tensor.shape
    element: list[int] = []
    for size in reversed(sizes):
        element.insert(0, at % max(1, size))
        at //= max(1, size)
    return element, x, y


def distance(ours: Sequence[Number], theirs: Sequence[Number]) -> float:
    """Root mean square of the differences; 0 where there is nothing to compare."""
    pairs = zip(ours, theirs, strict=False)
    squares = [(x - y) * (x - y) for x, y in pairs if x is not None and y is not None]
    return math.sqrt(sum(squares) / len(squares)) if squares else 0.0
