"""Match groups as parts of effects: what of a group is fusion, a cast, another library kernel, …"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from traceview.derive.effects.graphs import VIEWS, GraphFacts
from traceview.derive.effects.kernels import ROUNDING, Kernel
from traceview.derive.effects.parts import (
    CASTS,
    COPIES,
    FUSION,
    LESS_WORK,
    LIBRARY,
    OTHER_KERNELS,
    RECOMPUTE,
    Part,
)
from traceview.derive.windows import HOST_COPY
from traceview.parse.kineto.categories import is_users
from traceview.tables import grouped
from traceview.words.numbers import count

#: Kernels that a library or a template provides: their choice is what differs.
LIBRARY_CATEGORIES = frozenset({"gemm", "attention", "convolution", "generated_template"})
#: Look-ups, scatters and sorts: an operator may do them in compiled code as well.
INDEXING = "indexing"
CAST_OPS = frozenset({"aten._to_copy", "prims.convert_element_type"})
COPY_OPS = frozenset({"aten.clone", "aten.copy", "aten.copy_"})
#: Operators or kernels that a row names before it says how many more there are.
NAMED = 3

Kernels = Sequence[Kernel]
#: Those of eager and of compiled steps.
Sides = tuple[list[Kernel], list[Kernel]]
#: File and line.
Place = tuple[str | None, int | None]
#: File, line, operator, whether in a backward.
Site = tuple[str | None, int | None, str, bool]
Times = dict[Site, float]


def group_parts(
    kernels: Kernels, groups: dict[int, dict[str, Any]], facts: GraphFacts
) -> list[Part]:
    """Parts of all kernels; ``groups`` are the rows of ``match_groups`` by ``group_id``.

    Every kernel's time lands in exactly one part: the sum is that of the kernels. What is copied
    between host and device is no kernel's work that another could take over.
    """
    parts: list[Part] = []
    copied: list[Kernel] = []
    computed: list[Kernel] = []
    for kernel in kernels:
        (copied if re.match(HOST_COPY, kernel.name) else computed).append(kernel)
    for mine in grouped(copied, by=attrgetter("name")).values():
        before, after = _sides(mine)
        added = sum(each.count for each in before) < sum(each.count for each in after)
        parts += [_part(COPIES, before, after)] if added else _by_name(mine)
    members = grouped(computed, by=attrgetter("group_id"))
    # Eager executions per step at each place: a forward's and its backward's are two groups.
    times: Times = defaultdict(float)
    for kernel in kernels:
        if kernel.stance == "eager":
            times[_site(kernel)] += kernel.count
    for group_id, mine in members.items():
        group = {} if group_id is None else groups.get(group_id, {})
        if group.get("kind") == "same" or group_id is None:
            parts += _by_name(mine)
        else:
            parts += _changed(mine, group, facts, times)
    return parts


def _changed(
    kernels: Kernels, group: dict[str, Any], facts: GraphFacts, times: Times
) -> list[Part]:
    """Parts of one group of kernels that compiling may have changed."""
    parts: list[Part] = []
    eager: Kernels
    compiled: Kernels
    eager, compiled = _sides(kernels)
    again = [k for k in compiled if facts.recomputed(*k.compile_key, k.nodes)]
    if again:
        parts.append(_part(RECOMPUTE, (), again))
        compiled = [kernel for kernel in compiled if kernel not in again]
    left: list[Kernel] = []
    for kernel in eager:  # executions that the graphs no longer hold
        place, backward = (kernel.file, kernel.line), kernel.backward
        gone = facts.gone(place, kernel.operator, times[_site(kernel)], backward=backward)
        if gone > 0.0:
            parts.append(_part(LESS_WORK, [_share(kernel, gone)], ()))
        if gone < 1.0:
            left.append(_share(kernel, 1.0 - gone))
    eager = left
    # What both stances run equally often.
    before, after = _times(eager), _times(compiled)
    same = {name for name, times in before.items() if abs(after.get(name, -1.0) - times) < 1e-6}
    parts += _by_name([kernel for kernel in (*eager, *compiled) if kernel.name in same])
    eager, compiled = ([k for k in side if k.name not in same] for side in (eager, compiled))
    if eager and compiled:
        return parts + _replaced(eager, compiled, group.get("eager_casts_ms") or 0.0)
    # Nothing but a copy: of an input into a cudagraph's memory, or a clone made for a mutation.
    copies = [
        kernel
        for kernel in compiled
        if kernel.category == "copy" or (kernel.ops & COPY_OPS and kernel.ops <= COPY_OPS | VIEWS)
    ]
    if copies:
        parts.append(_part(COPIES, (), copies))
    rest = [kernel for kernel in compiled if kernel not in copies]
    return [*parts, *_by_name([*eager, *rest])]


def _replaced(eager: Kernels, compiled: Kernels, casts_ms: float) -> list[Part]:
    """Kernels that others replaced: library against library, casts, the rest by fusion.

    Where only one side calls a library, the choice to do so is what differs. ``casts_ms`` is what
    eager spends on casts, as profiled; compiled casts are kernels that do nothing else.
    """
    library = [[k for k in side if k.category in LIBRARY_CATEGORIES] for side in (eager, compiled)]
    if bool(library[0]) != bool(library[1]):
        return [_part(LIBRARY, eager, compiled)]
    parts = [_part(LIBRARY, *library)] if library[0] else []
    before, after = (
        [k for k in side if k.category not in LIBRARY_CATEGORIES] for side in (eager, compiled)
    )
    if at := handed_over((*before, *after)):
        put = [k for k in before if k.category == INDEXING and (k.file, k.line) in at]
        own = (kernel for kernel in after if not is_generated(kernel))
        handed = [kernel for kernel in own if (kernel.file, kernel.line) in at]
        parts.append(_part(LIBRARY, put, handed))
        before, after = [k for k in before if k not in put], [k for k in after if k not in handed]
    for sides in called_in_both((*before, *after)).values():
        parts.append(_part(LIBRARY, *sides))
        before, after = (
            [k for k in side if k not in mine]
            for side, mine in zip((before, after), sides, strict=True)
        )
    if not before and not after:
        return parts
    whole = _part(FUSION, before, after)
    copies = [kernel for kernel in before if kernel.category == "copy"]
    spent = min(casts_ms, _total(copies) or 0.0)
    if spent <= 0.0:
        return [*parts, whole]
    casts = [k for k in after if k.ops & CAST_OPS and k.ops <= CAST_OPS | VIEWS]
    kept = _total(casts)
    parts.append(_part(CASTS, copies, casts).timed(spent, kept))
    left = (whole.eager_ms or 0.0) - spent, (whole.compiled_ms or 0.0) - (kept or 0.0)
    if max(left) > ROUNDING:
        parts.append(whole.timed(*(ms if ms > ROUNDING else None for ms in left)))
    return parts


def handed_over(kernels: Iterable[Kernel]) -> dict[Place, Sides]:
    """Place → eager and compiled look-ups and scatters there: operators do them in both stances."""
    indexing = (k for k in kernels if k.category == INDEXING and k.line is not None)
    places = grouped(indexing, by=attrgetter("file", "line"))
    found = {place: _sides(mine) for place, mine in places.items()}
    return {place: sides for place, sides in found.items() if all(sides)}


def called_in_both(kernels: Iterable[Kernel]) -> dict[str, Sides]:
    """Operator → its kernels in eager and compiled steps, where it runs in both; no copies.

    What runs in a custom operator of the user's is called by that, in either.
    """
    called = (
        k for k in kernels if k.category != "copy" and not is_generated(k) and not in_users(k)
    )
    found = {
        name: _sides(mine) for name, mine in grouped(called, by=attrgetter("operator")).items()
    }
    return {name: sides for name, sides in found.items() if all(sides)}


def in_users(kernel: Kernel) -> bool:
    """Whether compiled code calls a custom operator of the user's for it."""
    return any(map(is_users, kernel.ops))


def is_generated(kernel: Kernel) -> bool:
    """Whether Inductor wrote it."""
    return kernel.category.startswith("generated_")


def _site(kernel: Kernel) -> Site:
    return kernel.file, kernel.line, kernel.operator, kernel.backward


def _share(kernel: Kernel, part: float) -> Kernel:
    return replace(kernel, ms=kernel.ms * part, count=kernel.count * part)


def _times(kernels: Kernels) -> dict[str, float]:
    times: dict[str, float] = defaultdict(float)
    for kernel in kernels:
        times[kernel.name] += kernel.count
    return times


def _by_name(kernels: Iterable[Kernel]) -> list[Part]:
    """Kernels that no effect claims, one part a name: the same in both, or in one stance alone."""
    parts = []
    for mine in grouped(kernels, by=attrgetter("name")).values():
        eager, compiled = _sides(mine)
        where = "in both" if eager and compiled else "only eager" if eager else "only compiled"
        part = _part(OTHER_KERNELS, eager, compiled)
        parts.append(replace(part, what=f"{part.what}, {where}"))
    return parts


def _sides(kernels: Iterable[Kernel]) -> Sides:
    found: Sides = ([], [])
    for kernel in kernels:
        found[kernel.stance == "compiled"].append(kernel)
    return found


def _part(effect: str, eager: Kernels, compiled: Kernels) -> Part:
    """The part of these kernels; one side may have none.

    Its words: ``aten::add ×2, aten::gelu → triton_poi_fused_add_gelu_0``, operators in eager.
    """
    every = (*eager, *compiled)
    longest = max(every, key=lambda kernel: kernel.ms)
    lines = [kernel for kernel in every if kernel.line is not None]
    place = max(lines, key=lambda kernel: kernel.ms, default=longest)
    what = _names(compiled, lambda kernel: kernel.name)
    if {kernel.name for kernel in eager} != {kernel.name for kernel in compiled}:
        before = _names(eager, lambda kernel: kernel.operator)
        what = " → ".join(filter(None, (before, what)))
    times = (_total(eager), _total(compiled))
    part = Part.of(effect, what, times, longest.clock, derived=True)
    return replace(part, group_id=longest.group_id, file=place.file, line=place.line)


def _total(kernels: Kernels) -> float | None:
    return sum(kernel.ms for kernel in kernels) if kernels else None


def _names(kernels: Kernels, name_of: Callable[[Kernel], str]) -> str:
    """The names that take longest with their executions per step, at most ``NAMED`` of them."""
    ms: dict[str, float] = defaultdict(float)
    times: dict[str, float] = defaultdict(float)
    for kernel in kernels:
        ms[name_of(kernel)] += kernel.ms
        times[name_of(kernel)] += kernel.count
    longest = sorted(ms, key=lambda name: -ms[name])
    often = {name: count(n) if n >= 1 else f"{n:.1g}" for name, n in times.items()}
    shown = [f"{name} ×{often[name]}" if often[name] != "1" else name for name in longest[:NAMED]]
    more = len(longest) - NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
