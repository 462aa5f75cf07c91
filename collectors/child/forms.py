"""Other ways to write an operator: the same result from other operators of torch.

Each is a function of the operator's own arguments, which raises NotImplementedError where they
can't be written so. None is faster for all shapes: they are timed on the step's own, next to the
operator itself (`form_trials`), and tried in compiled steps (`in_place_of`). Imported only then:
torch is there by that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._functorch.config

from . import forms_of_arrays, forms_of_layers
from .form import CALLS, FORMS, Act, Form, results_of

__all__ = ["CALLS", "FORMS", "in_place_of"]

#: What enters them in the table.
ENTERED = (forms_of_arrays, forms_of_layers)


@contextmanager
def in_place_of(op: str, way: str) -> Iterator[None]:
    """Where compiled code is made, ``op`` is written this way; as it is where it can't be.

    LookupError where there is no such operator, or way. torch's own decompositions that gradients
    are derived through are entered the same way (torch/_decomp/decompositions.py).
    """
    packet = getattr(torch.ops.aten, op.removeprefix("aten."), None)
    form = next((each for each in FORMS[op.replace(".", "::")] if each.way == way), None)
    if packet is None or form is None:
        raise LookupError(f"{op} has no other way {way!r}")
    key = torch._C.DispatchKey.Autograd
    # AOTAutograd's cache has what was compiled before under the same key.
    cached = hasattr(torch._functorch.config, "enable_autograd_cache")
    aside = {"enable_autograd_cache": False} if cached else {}
    entered: list[Any] = []
    try:
        for overload in (getattr(packet, name) for name in packet.overloads()):
            if not any(each.is_out for each in overload._schema.arguments):
                overload.py_impl(key)(_replaced(overload, form, key))
                entered.append(overload)
        with torch._functorch.config.patch(aside):
            yield
    finally:
        for overload in entered:
            overload.py_kernels.pop(key, None)
            overload._dispatch_cache.clear()


def _replaced(overload: Any, form: Form, key: Any) -> Act:
    def own(*arguments: Any, **named: Any) -> Any:
        kernel = overload.py_kernels.pop(key)
        overload._dispatch_cache.clear()
        try:
            return overload(*arguments, **named)
        finally:
            overload.py_kernels[key] = kernel
            overload._dispatch_cache.clear()

    def act(*arguments: Any, **named: Any) -> Any:
        try:
            made = results_of((form.compiled or form.act)(*arguments, **named))
        except (NotImplementedError, TypeError):
            return own(*arguments, **named)
        if len(overload._schema.returns) == 1:
            return made[0]
        given = own(*arguments, **named)  # what nothing reads is dropped from the graph
        first = (new.to(old.dtype) for new, old in zip(made, given, strict=False))
        return (*first, *given[len(made) :])

    return act
