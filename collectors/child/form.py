"""One other way to write an operator, and the table of them all, by the operator's name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

Act = Callable[..., Any]
Sizes = Sequence[int]


class Form(NamedTuple):
    """One other way.

    It gives all of the operator's results in their order, or the first. ``result``: which is
    compared with the operator's; None: none can be. ``alike``: what is the same of both, where they
    need not be equal. ``compiled``: the same as ``act`` with what generated code does on the way,
    and ``act`` leaves out. ``fused``: generated code makes one kernel of what are several in eager.
    """

    way: str
    act: Act
    result: int | None
    alike: Callable[[Any], Any]
    compiled: Act | None = None
    fused: bool = False


#: How a scatter reduces: traces have no strings.
REDUCED = "amax"

#: Operators that can't be given all of their arguments by position, as traces have them.
CALLS: dict[str, Act] = {
    **dict.fromkeys(
        ("aten::scatter_reduce", "aten::scatter_reduce_"),
        lambda x, dim, index, source, how, own: x.scatter_reduce(
            dim, index, source, how or REDUCED, include_self=own
        ),
    ),
    **{
        f"aten::{name}": lambda x, dim=None, correction=1, keepdim=False, name=name: getattr(
            torch, name
        )(x, dim, correction=1 if correction is None else int(correction), keepdim=keepdim)
        for name in ("std", "var", "std_mean", "var_mean")
    },
}

#: Operator → the other ways to write it.
FORMS: dict[str, list[Form]] = defaultdict(list)


def form(
    *names: str,
    way: str,
    result: int | None = 0,
    alike: Callable[[Any], Any] = torch.Tensor.double,
    compiled: Act | None = None,
    fused: bool = False,
) -> Callable[[Act], Act]:
    """Enter a function as a way to write these operators; the rest as in `Form`."""

    def enter(act: Act) -> Act:
        for name in names:
            FORMS[f"aten::{name}"].append(Form(way, act, result, alike, compiled, fused))
        return act

    return enter


def results_of(made: Any) -> Sequence[Any]:
    """One result or several, as a sequence."""
    return made if isinstance(made, tuple | list) else (made,)


def need(*conditions: bool) -> None:
    """Raise NotImplementedError unless all are true."""
    if not all(conditions):
        raise NotImplementedError
