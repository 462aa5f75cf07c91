"""
## What it finds
A function, class or object that compiled code uses and that is another one from call to call.

## Why it costs
Compiled code is made for the very function or class that was traced. Each new one is a whole
compile, until the recompile limit; from then on new ones run in eager. Where types differ, what
each needs compiled for itself is not known, so the cost is derived.

## Evidence
At least two recompiles of one function whose deciding guard checks the identity or the type of the
same source (`___check_obj_id`, `___check_type_id`), or whose compiled code was dropped because the
object is gone. A single one makes two variants, once, whatever alternates. Members of enums are
values: rc-python-constant.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information.

## What to do
Create it once, outside of the calls, and pass the same one again: a class in the module's body, a
function or object before the loop. Objects of one class do not recompile, only new classes do.
Where the choice between a few is meant, compile one function for each.

## Settings
- `fewest_recompiles`: recompiles of one function from which on it is named.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/guards.py, `GuardBuilder.ID_MATCH` and `TYPE_MATCH`
- https://github.com/pytorch/pytorch/issues/107866
- https://github.com/pytorch/pytorch/issues/163329
- https://github.com/pytorch/pytorch/issues/167504
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _recompile_kinds, _recompile_places, _recompiles
from traceview.rules._recompile_kinds import FEWEST_RECOMPILES
from traceview.rules._recompiles import Cause
from traceview.rules.finding import Finding
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV206"
NEEDS = frozenset({"recompiles"})

#: ``type=<class 'x.Y'>`` of a guard, or the class of what was met instead.
_CLASS = re.compile(r"<class '([^']+)'>")
_TENSOR = "a tensor type"
#: The function that a class is defined in: ``make.<locals>.Config``.
_MAKER = re.compile(r"(\w+)\.<locals>\.\w+'>")
_FUNCTIONS = frozenset({"function", "code", "builtin_function_or_method", "method"})
_PLAIN = frozenset({
    "int", "float", "bool", "str", "NoneType", "list", "tuple", "dict", "Tensor", "Parameter",
})  # fmt: skip
_FEW = 3


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and source."""
    for cause in _recompile_kinds.causes(tables, "identity"):
        count = _recompile_kinds.recompiles(cause)
        if count < fewest_recompiles:
            continue
        at, cost = _recompile_places.reading(tables, cause), cause.cost(tables)
        source = _source(cause)
        what, remedy = _words(cause, source)
        yield Finding(
            code=CODE,
            rule="rc-object-identity",
            severity=_recompile_kinds.severity(tables, cause, cost),
            title=(
                f"{_recompiles.opening(source)} is {what} from call to call, which recompiled "
                f"{cause.function} {times(count)}"
            ),
            explanation=_explanation(cause, source),
            cost=cost,
            confidence="derived" if cause.row["kind"] == "type_id" else "measured",
            location=at.place,
            inside=at.inside,
            about=cause.about,
            evidence=_recompile_kinds.evidence(tables, cause),
            what_to_do=remedy,
        )


def _source(cause: Cause) -> str:
    """A Python function is known by its code: ``fn.__code__`` is ``fn`` to its owner."""
    return cause.source.removesuffix(".__code__")


def _words(cause: Cause, source: str) -> tuple[str, str]:
    """(what it is each time, what to do)."""
    classes, first = _classes(cause), cause.row
    if set(classes) & _FUNCTIONS:
        return "another function", (
            f"Pass the same function each time. Where {source} is meant to choose between a few, "
            f"compile one function for each of them: torch.compile a wrapper that has its own "
            f"{source} built in."
        )
    if first["kind"] == "type_id" and len(set(classes)) > 1:
        return "of another type", (
            f"Pass {source} with one type, converted before the call."
            if set(classes) <= _PLAIN
            else f"Compile one function for each type of {source} that is meant, and choose "
            "between them outside of the compiled function."
        )
    if first["kind"] == "type_id":
        maker = _MAKER.search(first["guard"] or "")
        now = f", not in {maker[1]}() each time that it runs" if maker else ""
        return "of another class of the same name", (
            f"Define the class of {source} once, at the top of its module{now}, and make objects "
            "of it: a new object of the same class does not recompile."
        )
    return "another object", f"Create {source} once, before the calls, and pass it again."


def _classes(cause: Cause) -> list[str]:
    """Names of the classes that the guards expected and, where they say so, met instead."""
    texts = (row[column] or "" for row in cause.rows for column in ("guard", "new"))
    names = [name.rpartition(".")[2] for text in texts for name in _CLASS.findall(text)]
    return ["Tensor", *names] if any(row["old"] == _TENSOR for row in cause.rows) else names


def _explanation(cause: Cause, source: str) -> str:
    if any("got deallocated" in (row["guard"] or "") for row in cause.rows):
        return (
            f"Compiled code was made for one {source}; that object is gone, the compiled code was "
            "dropped with it, and the next object is compiled again."
        )
    known = list(dict.fromkeys(_classes(cause)))
    if set(known) & _FUNCTIONS:
        return f"Compiled code has the function that {source} was built in, and guards it."
    if cause.row["kind"] == "type_id":
        shown = ", ".join(known[:_FEW]) + (", …" if len(known) > _FEW else "")
        again = " A class that is defined again is another class." if len(known) == 1 else ""
        return (
            f"Compiled code is made for the type that {source} had when it was traced"
            f"{f' (met: {shown})' if shown else ''}, and guards it.{again}"
        )
    return f"Guards check that {source} is the very object that was traced; it was another one."
