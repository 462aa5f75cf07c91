"""Operators that a generated kernel's name says it holds."""

from __future__ import annotations

import re
from collections.abc import Container

#: Operators that Inductor puts into a kernel's name at most, and words of the longest operator.
NAMED_OPERATORS = 10
MOST_WORDS = 8
_FUSED_NAME = re.compile(r"fused_(\w+)_\d+$")


def named_operators(kernel_name: str, known: Container[str]) -> list[str]:
    """``triton_poi_fused_add_gelu_0`` as [add, gelu], if all of it can be read so, else nothing.

    Inductor names a kernel after the operators that the user called (``original_aten``), where the
    operators in its code are decomposed: gelu has become erf. It leaves out those after the tenth
    (``torch._inductor.config.triton.descriptive_names``, ``kernel_name_max_ops``).
    """
    match = _FUSED_NAME.search(kernel_name)
    words = match[1].split("_") if match else []
    found: list[str] = []
    while words:
        sizes = range(min(len(words), MOST_WORDS), 0, -1)
        size = next((n for n in sizes if "_".join(words[:n]) in known), None)
        if size is None or len(found) + 1 == NAMED_OPERATORS:
            return []
        found.append("_".join(words[:size]))
        words = words[size:]
    return found
