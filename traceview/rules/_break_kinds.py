"""Kinds of graph breaks that rules tell apart by torch's id or, on torch without ids, its words.

The ids stand in torch/_dynamo/graph_break_registry.json; each kind is one rule's business.
"""

from __future__ import annotations

import json
import re

from traceview.rules import _breaks, _places
from traceview.rules._rows import Row
from traceview.rules.finding import Location

_DYNAMIC_SHAPE = frozenset({"GB0036", "GB0037", "GB0246"})
_DISABLED = frozenset({"GB0098", "GB0099"})
_ASKED = frozenset({"GB0025"})
_BACKWARD = frozenset({"GB0123", "GB9186", "GB0442", "GB1042", "GB7054"})
#: That a frame has met its limit, or that a break could not be handled, is no cause of a break.
_SECONDARY = frozenset({"GB0039", "GB0065", "GB0066", "GB7000"})
#: So begins what torch says of a frame that it gives up, besides the break itself.
_GIVEN_UP = "WON'T CONVERT "
#: An operator in dots (``mylib.twist.default``) that is torch's own is no custom one.
_UNSUPPORTED = re.compile(r"unsupported operator: (?!aten\.|prims?\.)(\w+)\.(\w+)")
_STDLIB = re.compile(r"/lib(?:64)?/python[\d.]+t?/(?!(?:site|dist)-packages/)|^<frozen ")
#: In the type, up to torch 2.6 with the older name; of a wrapped module in the explanation.
_DISABLE = re.compile(r"torch\.compiler\.disable|torch\._dynamo\.disable\(\)")
_WRAPPED = "wrapped with `torch.compiler.disable`"
_OPTIMIZER = re.compile(r"qualname: (?:Optimizer|\w*(?:LR|Scheduler)\w*)\.|module: torch\.optim\b")


def is_dynamic_shape(row: Row) -> bool:
    """How many elements an operator gives back depends on a tensor's values."""
    return row["gb_id"] in _DYNAMIC_SHAPE or "dynamic shape operator" in _type(row).lower()


def is_wanted(row: Row) -> bool:
    """Asked for: ``torch.compiler.disable`` around the callee, or ``torch._dynamo.graph_break()``.

    torch's own code does both, which is not what the user asked for.
    """
    disabled = row["gb_id"] in _DISABLED or _DISABLE.search(_type(row)) is not None
    wanted = disabled or is_asked(row) or _WRAPPED in (row["explanation"] or "")
    return wanted and not (_places.in_torch(_innermost(row)) or _is_wrapper(row))


def is_asked(row: Row) -> bool:
    """``torch._dynamo.graph_break()``, whoever calls it."""
    return row["gb_id"] in _ASKED


def unknown_operator(row: Row) -> tuple[str, str] | None:
    """(namespace, name) of an operator not of torch's own that has no fake implementation."""
    found = _UNSUPPORTED.search(row["context"] or "") or _UNSUPPORTED.search(row["reason"] or "")
    return (found[1], found[2]) if found else None


def is_backward(row: Row) -> bool:
    """``backward()`` or ``autograd.grad``."""
    return row["gb_id"] in _BACKWARD or "Tensor.backward" in _type(row)


def is_optimizer(row: Row) -> bool:
    """An optimizer's or a scheduler's method, which Dynamo skips or which breaks by itself."""
    inside = "/torch/optim/" in _file(row)
    return inside or bool(_OPTIMIZER.search(row["context"] or ""))


def is_rest(row: Row) -> bool:
    """Something that Dynamo cannot trace and that no other rule is about."""
    others = (
        _breaks.is_item, _breaks.is_data_dependent, _breaks.is_io, is_dynamic_shape, is_wanted,
        is_backward, is_optimizer, unknown_operator, _is_wrapper,
    )  # fmt: skip
    cause = row["gb_id"] not in _SECONDARY and not _type(row).startswith(_GIVEN_UP)
    return cause and not any(kind(row) for kind in others)


def _is_wrapper(row: Row) -> bool:
    """DDP's and its like's own code, or ``contextlib`` at their service.

    It breaks around each forward, whatever the user compiles.
    """
    file = _file(row)
    at_service = "module: torch." in (row["context"] or "") and _STDLIB.search(file) is not None
    return at_service or "/torch/nn/parallel/" in file or "/torch/distributed/" in file


def _file(row: Row) -> str:
    found = _innermost(row)
    return found.file if found else ""


def _innermost(row: Row) -> Location | None:
    """The inner end of ``user_stack``, where the break really is; its file is what counts."""
    try:
        file = json.loads(row["user_stack"] or "[]")[-1]["file"]
    except (ValueError, LookupError, TypeError):
        return None
    return Location(file, 1) if isinstance(file, str) else None


def _type(row: Row) -> str:
    return row["gb_type"] or ""
