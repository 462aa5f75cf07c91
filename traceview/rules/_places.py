"""Names of ``traceview.derive.facts.places`` for rules that have not moved to ``rules.kit`` yet."""

from __future__ import annotations

from traceview.derive.facts.places import (
    Owners,
    Spot,
    about,
    about_calls,
    about_region,
    code_object,
    compile_call,
    first_call,
    if_users,
    in_torch,
    region_of,
    short,
    source_text,
    stack,
    user,
)

__all__ = [
    "Owners",
    "Spot",
    "about",
    "about_calls",
    "about_region",
    "code_object",
    "compile_call",
    "first_call",
    "if_users",
    "in_torch",
    "region_of",
    "short",
    "source_text",
    "stack",
    "user",
]
