"""Operators of the step timed next to other ways to write them (`forms`), after the script's end.

The calls are those of the last profiler window of compiled steps, with their sizes, strides,
dtypes and other arguments; the data are random. Those that take longest are made again as they are
and in each other way, in turn, with the backward where the step has one: one ``form_trial`` event
for each way whose results agree. Ways that generated code makes one kernel of are compiled first;
so are operators that only the eager steps call, because compiled ones have generated code for them.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from math import inf, prod
from statistics import fmean
from typing import Any, NamedTuple

from .compiles import compiled, unheard
from .form import Act, Form, results_of
from .forms import CALLS, FORMS
from .recorder import Recorder
from .shape_trials import Operand, in_turn, random_operands, seconds_of
from .shape_works import DTYPES, last_traces, text_of

BUDGET_S = 3.0
#: Of what has to be compiled, which takes seconds each.
COMPILING_S = 8.0
ROUNDS = 3
#: Part of a step on a host that a call has to take.
_LEAST_SHARE = 0.03
#: On a device, where calls are short and a trace does not say which take longest, more.
_MOST_CALLS, _MOST_ON_DEVICE = 8, 24
#: More than rounding, and less than another result.
_LIMIT = 1e-2
_NAMES = "|".join(sorted(name.removeprefix("aten::") for name in FORMS)).encode()
_EVENT = re.compile(
    rb'"name": "(aten::(?:' + _NAMES + rb'))".{0,200}?"ts": ([\d.]+),\s*"dur": ([\d.]+)'
    rb'.{0,400}?"args": (\{[^}]*\})',
    re.DOTALL,
)
_BACKWARD = re.compile(rb'evaluate_function: (\w+?)Backward\d*"|"name": "aten::(\w+)_backward"')
_STEP = re.compile(rb'"traceview step (\d+)".{0,200}?"dur": ([\d.]+)', re.DOTALL)


class Call(NamedTuple):
    """An operator and its arguments: tensors, and values as JSON."""

    op: str
    arguments: tuple[Operand | str, ...]

    @property
    def operands(self) -> list[Operand]:
        """The tensors among its arguments."""
        return [each for each in self.arguments if isinstance(each, Operand)]


class Calls(NamedTuple):
    """Calls of one operator with the same arguments: how many a step has; us of each (host).

    ``own``: compiled steps call it, and have no generated code in its place.
    """

    call: Call
    per_step: float
    host_us: float
    backward: bool
    own: bool = True


class Timed(NamedTuple):
    """Median seconds of a call as it is and in another way, that compiled where it ``is_fused``."""

    way: str
    base: float
    value: float
    is_fused: bool


def write_form_trials(torch: Any, recorder: Recorder, *, device: bool) -> None:
    """Time the step's longest calls that can be written another way, for 3 s and 8 s at most."""
    traces = dict(last_traces(recorder.raw / "profile", recorder.pid))
    texts = {name: text_of(path) for name, path in traces.items()}
    backwards = set().union(*map(_backwards, texts.values()))
    found = {name: calls_of(text, backwards, device=device) for name, text in texts.items()}
    own = found.get("compiled", [])
    called = {each.call.op for each in own}
    generated = [
        each._replace(own=False)
        for each in found.get("eager", ())
        if each.call.op not in called and any(form.fused for form in FORMS[each.call.op])
    ]
    where = f"cuda:{torch.cuda.current_device()}" if device else "cpu"
    most = _MOST_ON_DEVICE if device else _MOST_CALLS
    with torch.no_grad(), torch.autocast("cuda" if device else "cpu", enabled=False):
        for each, timed in _trials(torch, recorder, own[:most], generated[:_MOST_CALLS], device):
            values = [text for text in each.call.arguments if isinstance(text, str) and text]
            recorder.write(
                "form_trial",
                device=where,
                op=each.call.op,
                shape=", ".join("x".join(map(str, one.size)) for one in each.call.operands),
                settings=", ".join(values),
                dtype=each.call.operands[0].dtype,
                count=each.per_step,
                backward=each.backward,
                own=each.own,
                way=timed.way,
                fused=timed.is_fused,
                base=timed.base * 1e6,
                value=timed.value * 1e6,
                clock="device" if device else "host",
            )


def _trials(
    torch: Any, recorder: Recorder, own: list[Calls], generated: list[Calls], device: bool
) -> Iterator[tuple[Calls, Timed]]:
    """As operators of torch first; then what has to be compiled, the longest calls first."""
    deadline = time.monotonic() + BUDGET_S
    for each in own:
        if time.monotonic() >= deadline:
            recorder.note("other forms", f"the time limit of {BUDGET_S:.0f} s was reached")
            break
        yield from ((each, timed) for timed in _timed(torch, each, device, deadline, fused=False))
    deadline = time.monotonic() + COMPILING_S
    with unheard(torch):
        for each in sorted(own + generated, key=lambda each: -each.per_step * each.host_us):
            if time.monotonic() >= deadline:
                recorder.note("other forms", f"the time limit of {COMPILING_S:.0f} s was reached")
                return
            fused = _timed(torch, each, device, deadline, fused=True)
            yield from ((each, timed) for timed in fused)


def _backwards(text: bytes) -> set[str]:
    """Operators that have a backward in a trace, as autograd's nodes spell them, or operators."""
    return {_plain((one or other).decode()) for one, other in _BACKWARD.findall(text)}


def _plain(name: str) -> str:
    return name.partition("::")[2].replace("_", "").lower() or name.replace("_", "").lower()


def calls_of(text: bytes, backwards: Collection[str], *, device: bool) -> list[Calls]:
    """A trace's calls with other forms, the longest first, on a device the largest."""
    lengths = {number: float(us) for number, us in _STEP.findall(text)}
    steps, step_us = max(1, len(lengths)), fmean(lengths.values()) if lengths else 0.0
    spent: dict[Call, list[float]] = defaultdict(list)
    for name, us, arguments in _outermost(text):
        if call := _call(name, arguments):
            spent[call].append(us)
    found = [
        Calls(call, len(each) / steps, fmean(each), _plain(call.op) in backwards)
        for call, each in spent.items()
    ]

    def cost(each: Calls) -> float:
        size = sum(prod(one.size) for one in each.call.operands)
        return each.per_step * (size if device else each.host_us)

    least = 0.0 if device else _LEAST_SHARE * step_us
    return sorted((each for each in found if cost(each) >= least), key=cost, reverse=True)


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
        columns = (args[key] for key in ("Input Dims", "Input Strides", "Input type"))
        values = args["Concrete Inputs"]
        found: list[Operand | str] = [
            Operand(tuple(size), tuple(stride), DTYPES[kind])
            if kind in DTYPES
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
    torch: Any, calls: Calls, device: bool, deadline: float, *, fused: bool
) -> Iterator[Timed]:
    """All ways whose results agree; with ``fused`` those that are compiled."""
    forms = [each for each in FORMS[calls.call.op] if each.fused >= fused]
    arguments = _arguments(torch, calls.call, device) if forms else None
    if arguments is None:
        return
    own = operator(torch, calls.call)
    acts = {each.way: each.act for each in forms if _agrees(own, each, arguments)}
    if fused:
        acts = {way: compiled(torch, act) for way, act in acts.items()}
    base = own if calls.own else compiled(torch, own)
    run = _with_backward if calls.backward else _forward
    takes = {
        way: partial(_seconds, torch, device, run(torch, act, arguments))
        for way, act in {"": base, **acts}.items()
    }
    found = in_turn(takes, ROUNDS, deadline) if acts else {"": inf}
    of_own = found.pop("")
    for way, seconds in found.items():
        if max(of_own, seconds) < inf:
            yield Timed(way, of_own, seconds, fused)


def _seconds(torch: Any, device: bool, run: Callable[[], object]) -> float:
    """Infinite where it has no backward, needs too much memory or can't be compiled."""
    try:
        return seconds_of(torch, device, run)
    except Exception:  # noqa: BLE001 - whatever torch has to say to it
        return inf


def _arguments(torch: Any, call: Call, device: bool) -> list[Any] | None:
    """Random tensors, and the values; None where they do not fit into memory well."""
    kept = call.arguments[: _named(torch, call)[0]]
    asked = [each for each in kept if isinstance(each, Operand)]
    operands = random_operands(torch, asked, device, bytes_each=32)
    if operands is None:
        return None
    tensors = iter(operands)
    made: list[Any] = [
        next(tensors) if isinstance(each, Operand) else json.loads(each) if each else None
        for each in kept
    ]
    if call.op in ("aten::multinomial", "aten::prod"):
        made[0] = made[0].abs()
    if call.op.startswith("aten::scatter") and 0 not in made[2].stride():
        rows = torch.randint(made[0].shape[made[1]], made[2].shape[:1], device=made[2].device)
        made[2].copy_(rows.view(-1, *(1 for _ in made[2].shape[1:])))
    if call.op.startswith("aten::_embedding_bag"):
        weight, indices, offsets = made[:3]
        indices.random_(weight.shape[0])
        bags = max(1, offsets.shape[0] - (len(made) > 7 and bool(made[7])))
        offsets.copy_(torch.arange(offsets.shape[0]) * (indices.shape[0] // bags))
    return made


def _named(torch: Any, call: Call) -> tuple[int, list[str]]:
    """How many arguments it has, without those that results are written into; names of the last.

    Those are the ones that can't be given by position.
    """
    packet = getattr(torch.ops.aten, call.op.removeprefix("aten::"))
    schemas = (getattr(packet, name)._schema.arguments for name in packet.overloads())
    known = [[each for each in schema if not each.is_out] for schema in schemas]
    given = [isinstance(each, Operand) for each in call.arguments]
    for count in range(len(given), 0, -1):
        for schema in known:
            tensors = ["Tensor" in str(each.type) for each in schema[:count]]
            asked = zip(given, tensors, strict=False)
            if len(schema) >= count and all(had <= may for had, may in asked):
                return count, [each.name for each in schema[:count] if each.kwarg_only]
    return len(given), []


def operator(torch: Any, call: Call) -> Act:
    """The operator as it is, with the arguments as the trace has them."""
    packet = getattr(torch.ops.aten, call.op.removeprefix("aten::"))
    count, names = _named(torch, call)
    first = count - len(names)

    def by_name(*arguments: Any) -> Any:
        return packet(*arguments[:first], **dict(zip(names, arguments[first:], strict=True)))

    return CALLS.get(call.op) or (by_name if names else packet)


def _agrees(own: Act, form: Form, arguments: list[Any]) -> bool:
    """Whether it can be written so, and gives the same but for rounding."""
    try:
        right, other = results_of(own(*arguments)), results_of(form.act(*arguments))
        if form.result is None:
            return True
        first, second = (form.alike(each[form.result]) for each in (right, other))
        if first.shape != second.shape:
            return False
        return bool((first - second).abs().max() <= _LIMIT * first.abs().max())
    except (RuntimeError, TypeError, ValueError, IndexError):  # other arguments than it knows
        return False


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
            found = results_of(act(*leaves))[0]
            return torch.autograd.grad(found, asked, torch.ones_like(found), allow_unused=True)

    return run
