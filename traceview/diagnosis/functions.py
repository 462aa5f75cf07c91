"""The function that a finding's line stands in, where its rule knows the line alone.

Guards and profiles name lines; the run's own copy of the file says whose they are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from traceview.derive.syntax import function_at, syntax_tree
from traceview.rules.finding import Finding, Location


def with_functions(read: Callable[[str], str | None]) -> Callable[[Finding], Finding]:
    """A function that fills in what is missing; ``read``: file name → text, None without a copy."""

    @cache
    def tree(file: str) -> ast.Module | None:
        return syntax_tree(read(file) or "")

    def fill(place: Location) -> Location:
        known = None if place.function else tree(place.file)
        return replace(place, function=function_at(known, place.line)) if known else place

    def filled(finding: Finding) -> Finding:
        place = finding.location and fill(finding.location)
        return replace(finding, location=place, also_at=tuple(map(fill, finding.also_at)))

    return filled
