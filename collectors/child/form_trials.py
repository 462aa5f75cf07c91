"""Operators of the step timed next to other ways to write them (`forms`), after the script's end.

The calls are those of the last profiler window of compiled steps, with their sizes, strides,
dtypes and other arguments; the data are random. Those that take longest are made again as they are
and in each other way, in turn, with the backward where the step has one: one ``form_trial`` event
for each way whose results agree.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from .ceilings import free_bytes
from .forms import FORMS, Act, Form
from .recorder import Recorder
from .shape_trials import seconds_of
from .shape_works import last_traces, text_of

BUDGET_S = 3.0
ROUNDS = 3
_MOST_CALLS = 8
#: More than rounding, and less than another result.
_LIMIT = 1e-2
_NAMES = "|".join(sorted(name.removeprefix("aten::") for name in FORMS)).encode()
_EVENT = re.compile(
    rb'"name": "(aten::(?:' + _NAMES + rb'))".{0,200}?"ts": ([\d.]+),\s*"dur": ([\d.]+)'
    rb'.{0,400}?"args": (\{[^}]*\})',
    re.DOTALL,
)
_BACKWARD = re.compile(rb'"name": "(aten::\w+)_backward"')
_STEP = re.compile(rb'"traceview step (\d+)"')
_DTYPES = {
    **{"float": "float32", "double": "float64", "bool": "bool"},
    **{"c10::BFloat16": "bfloat16", "c10::Half": "float16"},
    **{"long int": "int64", "int": "int32", "short int": "int16"},
    **{"signed char": "int8", "unsigned char": "uint8"},
    **{"c10::complex<float>": "complex64", "c10::complex<double>": "complex128"},
}


class Operand(NamedTuple):
    """A tensor among a call's arguments."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


class Call(NamedTuple):
    """An operator and its arguments: tensors, and values as JSON."""

    op: str
    arguments: tuple[Operand | str, ...]

    @property
    def operands(self) -> list[Operand]:
        """The tensors among its arguments."""
        return [each for each in self.arguments if isinstance(each, Operand)]


class Calls(NamedTuple):
    """Calls of one operator with the same arguments: how many a step has; us of each (host)."""

    call: Call
    per_step: float
    host_us: float
    backward: bool


def write_form_trials(torch: Any, recorder: Recorder, *, device: bool) -> None:
    """Time the step's longest calls that can be written another way, for about 3 s."""
    deadline = time.monotonic() + BUDGET_S
    traces = dict(last_traces(recorder.raw / "profile", recorder.pid))
    found = calls_of(traces["compiled"], device=device) if "compiled" in traces else []
    where = f"cuda:{torch.cuda.current_device()}" if device else "cpu"
    with torch.no_grad(), torch.autocast("cuda" if device else "cpu", enabled=False):
        for each in found:
            if time.monotonic() >= deadline:
                recorder.note("other forms", f"the time limit of {BUDGET_S:.0f} s was reached")
                return
            first = each.call.operands[0]
            values = [text for text in each.call.arguments if isinstance(text, str) and text]
            for way, base, seconds in _timed(torch, each, device, deadline):
                recorder.write(
                    "form_trial",
                    device=where,
                    op=each.call.op,
                    shape=", ".join("x".join(map(str, one.size)) for one in each.call.operands),
                    settings=", ".join(values),
                    dtype=first.dtype,
                    count=each.per_step,
                    backward=each.backward,
                    way=way,
                    base=base * 1e6,
                    value=seconds * 1e6,
                    clock="device" if device else "host",
                )


def calls_of(trace: Path, *, device: bool) -> list[Calls]:
    """The step's calls with other forms; those that take longest, on a device the largest."""
    text = text_of(trace)
    backwards = {name.decode() for name in _BACKWARD.findall(text)}
    steps = max(1, len(set(_STEP.findall(text))))
    spent: dict[Call, list[float]] = defaultdict(list)
    for name, us, arguments in _outermost(text):
        if call := _call(name, arguments):
            spent[call].append(us)
    found = [
        Calls(call, len(each) / steps, fmean(each), call.op in backwards)
        for call, each in spent.items()
    ]

    def cost(each: Calls) -> float:
        size = sum(prod(one.size) for one in each.call.operands)
        return each.per_step * (size if device else each.host_us)

    return sorted(found, key=cost, reverse=True)[:_MOST_CALLS]


def _outermost(text: bytes) -> Iterator[tuple[str, float, bytes]]:
    """Name, us and arguments of calls that no other of the same name makes, in order."""
    events = [
        (float(start), float(us), name.decode(), arguments)
        for name, start, us, arguments in _EVENT.findall(text)
    ]
    ends: dict[str, float] = {}
    for start, us, name, arguments in sorted(events, key=lambda each: (each[0], -each[1])):
        if start >= ends.get(name, 0.0):
            ends[name] = start + us
            yield name, us, arguments


def _call(name: str, arguments: bytes) -> Call | None:
    """None where an argument is of another kind, or there is no tensor with elements."""
    try:
        args = json.loads(arguments)
        columns = (args[f"{key}"] for key in ("Input Dims", "Input Strides", "Input type"))
        values = args["Concrete Inputs"]
        found: list[Operand | str] = [
            Operand(tuple(size), tuple(stride), _DTYPES[kind])
            if kind in _DTYPES
            else _value(kind, value)
            for size, stride, kind, value in zip(*columns, values, strict=True)
        ]
    except (ValueError, KeyError, TypeError):
        return None
    while found and found[-1] == "":
        found.pop()
    call = Call(name, tuple(found))
    return call if call.operands and all(prod(each.size) for each in call.operands) else None


def _value(kind: str, text: str) -> str:
    if kind not in ("Scalar", "ScalarList", ""):
        raise ValueError(kind)
    return json.dumps(json.loads(re.sub(r"(\d)\.(?!\d)", r"\1.0", text.lower()))) if text else ""


def _timed(
    torch: Any, calls: Calls, device: bool, deadline: float
) -> Iterator[tuple[str, float, float]]:
    """(way, median seconds of the call as it is, and in that way) of ways whose results agree."""
    arguments = _arguments(torch, calls.call, device)
    if arguments is None:
        return
    own = getattr(torch.ops.aten, calls.call.op.removeprefix("aten::"))
    acts = {each.way: each.act for each in FORMS[calls.call.op] if _agrees(own, each, arguments)}
    run = _with_backward if calls.backward else _forward
    runs = {way: run(torch, act, arguments) for way, act in {"": own, **acts}.items()}
    samples: dict[str, list[float]] = {way: [] for way in runs}
    for turn in range(ROUNDS + 1 if acts else 0):
        for way, found in samples.items():
            with suppress(RuntimeError):  # no backward, or too much memory
                seconds = seconds_of(torch, device, runs[way])
                if turn:  # the first one warms up
                    found.append(seconds)
        if turn and time.monotonic() > deadline:
            break
    base = samples.pop("")
    for way, found in samples.items():
        if base and found:
            yield way, median(base), median(found)


def _arguments(torch: Any, call: Call, device: bool) -> list[Any] | None:
    """Random tensors, and the values; None where they do not fit into memory well."""
    room = torch.cuda.mem_get_info()[0] if device else free_bytes()
    extents = [_extent(each) for each in call.operands]
    if 32 * sum(extents) > room // 8:
        return None
    where = "cuda" if device else "cpu"
    seed = torch.Generator(device=where).manual_seed(0)
    made: list[Any] = []
    for each in call.arguments[: _most_arguments(torch, call.op)]:
        if isinstance(each, str):
            made.append(json.loads(each) if each else None)
            continue
        data = torch.empty(_extent(each), device=where).normal_(generator=seed)
        data = data.to(getattr(torch, each.dtype)).as_strided(each.size, each.stride)
        made.append(data)
    if call.op == "aten::sort" and len(made) == 4:
        del made[1]  # stable, an argument by name only
    if call.op == "aten::multinomial":
        made[0] = made[0].abs()
    if call.op.startswith("aten::_embedding_bag"):
        weight, indices, offsets = made[:3]
        indices.random_(weight.shape[0], generator=seed)
        bags = max(1, offsets.shape[0] - (len(made) > 7 and bool(made[7])))
        offsets.copy_(torch.arange(offsets.shape[0]) * (indices.shape[0] // bags))
    return made


def _most_arguments(torch: Any, op: str) -> int:
    """Without those that results are written into."""
    packet = getattr(torch.ops.aten, op.removeprefix("aten::"))
    schemas = (getattr(packet, name)._schema for name in packet.overloads())
    return max(sum(not each.is_out for each in schema.arguments) for schema in schemas)


def _extent(operand: Operand) -> int:
    """Elements from the first to the last in memory."""
    return 1 + sum((n - 1) * s for n, s in zip(operand.size, operand.stride, strict=True))


def _agrees(own: Act, form: Form, arguments: list[Any]) -> bool:
    """Whether it can be written so, and gives the same but for rounding."""
    try:
        right, other = _flat(own(*arguments)), _flat(form.act(*arguments))
        if form.result is None:
            return True
        first, second = form.alike(right[form.result]), form.alike(other[0])
        if first.shape != second.shape:
            return False
        return bool((first - second).abs().max() <= _LIMIT * first.abs().max())
    except (RuntimeError, TypeError, ValueError, IndexError):  # other arguments than it knows
        return False


def _flat(results: Any) -> Sequence[Any]:
    return results if isinstance(results, tuple | list) else (results,)


def _forward(torch: Any, act: Act, arguments: list[Any]) -> Callable[[], object]:
    def run() -> object:
        with torch.no_grad():
            return act(*arguments)

    return run


def _with_backward(torch: Any, act: Act, arguments: list[Any]) -> Callable[[], object]:
    leaves = [
        each.detach().requires_grad_()
        if isinstance(each, torch.Tensor) and each.is_floating_point()
        else each
        for each in arguments
    ]
    asked = [each for each in leaves if isinstance(each, torch.Tensor) and each.requires_grad]

    def run() -> object:
        with torch.enable_grad():
            found = _flat(act(*leaves))[0]
            return torch.autograd.grad(found, asked, torch.ones_like(found), allow_unused=True)

    return run
