"""
## What it finds
A function, class or object that compiled code uses and that is not the same one in every call.

## Why it costs
Compiled code is valid for the function or class that was traced. Every new one costs a whole
compile, up to the recompile limit. After that, new ones run in eager. Where types differ, it is not
known which of them need a compile of their own, so the cost is derived.

## Evidence
At least two recompiles of one function whose deciding guard checks the identity or the type of the
same source (`___check_obj_id`, `___check_type_id`), or whose compiled code was dropped because the
object is gone. A single one makes two variants, once, whatever alternates. Members of enums are
values: rc-python-constant. A class that is defined again is shown where it is made, if one function
in the script's source makes a class of that name: by a class statement, or by a call such as
`namedtuple("Record", …)`.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information.

## What to do
Create it once, outside the calls, and pass the same one again: a class in the module's body, a
function or object before the loop. Objects of one class do not recompile, only new classes do. To
choose between a few, compile one function for each.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are not reported.

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

from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES, Cause
from traceview.rules.kit import Finding, Location, Spot, Tables, rows

CODE = "TV206"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

#: ``type=<class 'x.Y'>`` of a guard, or the class of what was met instead.
_CLASS = re.compile(r"<class '([^']+)'>")
_TENSOR = "a tensor type"
#: The function that a class is defined in: ``make.<locals>.Config``.
_MAKER = re.compile(r"(\w+)\.<locals>\.\w+'>")
_FUNCTIONS = frozenset({"function", "code", "builtin_function_or_method", "method"})
_PLAIN = frozenset({"int", "float", "bool", "str", "NoneType", "list", "tuple", "dict"})
_TENSORS = frozenset({"Tensor", "Parameter"})
_FEW = 3


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and source."""
    for cause in _recompiles.causes(tables, "identity", fewest_recompiles):
        source = cause.source.removesuffix(".__code__")  # a function is its code to torch
        classes = _classes(cause) if cause.row["kind"] == "type_id" else []
        sites = [row for row in rows(tables, "class_sites") if [row["class_name"]] == classes]
        what, why, remedy = _words(cause, source, sites[0]["function"] if sites else None)
        if any("got deallocated" in (row["guard"] or "") for row in cause.rows):
            why = (
                f"Compiled code belonged to one {source}. That object is gone, its compiled code "
                "was dropped with it, and the next object is compiled again."
            )
        read = _recompiles.reading(tables, cause)
        made = [Location(row["file"], row["line"], row["function"]) for row in sites[:1]]
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-object-identity",
            title=f"{source} {what}",
            explanation=why,
            at=Spot(made[0]) if made else read,
            also_at=(read.place,) if made and read.place else (),
            confidence="derived" if cause.row["kind"] == "type_id" else "measured",
            evidence=_recompiles.evidence(tables, cause),
            what_to_do=remedy,
        )


def _classes(cause: Cause) -> list[str]:
    """Names of the classes that the guards expected and, where they say so, met instead."""
    texts = (row[column] or "" for row in cause.rows for column in ("guard", "new"))
    names = [name.rpartition(".")[2] for text in texts for name in _CLASS.findall(text)]
    tensor = ["Tensor"] if any(row["old"] == _TENSOR for row in cause.rows) else []
    return list(dict.fromkeys([*tensor, *names]))


def _words(cause: Cause, source: str, made_in: str | None) -> tuple[str, str, str]:
    """(what is different about it, why it recompiles, what to do).

    ``made_in``: the function that makes its class, where that is known.
    """
    classes = _classes(cause)
    if _FUNCTIONS.intersection(classes):
        return (
            "is not the same function in every call",
            f"The function {source} is compiled in, and guarded.",
            "Pass the same function each time. To choose between a few, compile one function for "
            f"each of them: torch.compile a wrapper that has its own {source} built in.",
        )
    if cause.row["kind"] != "type_id":
        return (
            "is not the same object in every call",
            f"Guards check that {source} is the same object as when it was traced; it was not.",
            f"Create {source} once, before the calls, and pass it again.",
        )
    shown = ", ".join(classes[:_FEW]) + (", …" if len(classes) > _FEW else "")
    why = (
        f"Compiled code is valid for the type that {source} had when it was traced"
        f"{f' (met: {shown})' if shown else ''}, and guards it."
    )
    if len(classes) > 1:
        return (
            "does not have the same type in every call",
            why,
            f"Pass {source} with one type, converted before the call."
            if set(classes) <= _PLAIN | _TENSORS
            else f"Compile one function for each type of {source}, and choose between "
            "them outside the compiled function.",
        )
    if made_in is None and (maker := _MAKER.search(cause.row["guard"] or "")):
        made_in = maker[1]
    now = f", not in {made_in}() each time that it runs" if made_in else ""
    return (
        "has a class that is defined again between calls",
        why + (" A class that is defined again is a different class." if classes else ""),
        f"Define the class of {source} once, at the top of its module{now}, and make objects "
        "of it: a new object of the same class does not recompile.",
    )
