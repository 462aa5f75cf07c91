"""Table ``library_pairs``: the same work of a library in both stances, and what differs about it.

A library's kernels of a match group are paired by shape; where one shape of each stance is left in
a group, these are the same work padded. An operator that has no generated code is paired by its
name; what is left of a line then, by the kind of its work (``index_add_`` and ``index_put_``).
Where all of a group's library work became generated kernels, the group is one pair. A Triton kernel
of the user's own is paired by its name: compiled code launches it itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from traceview.derive.effects.groups import Sides, handed_over, in_users, is_generated
from traceview.derive.effects.kernels import Kernel
from traceview.derive.origins.work import LIBRARY
from traceview.torchtext.kernel_source import float64_arguments

Row = dict[str, Any]
#: Group, kind of work, whether it is a backward's.
_Place = tuple[int | None, str, bool]
#: A library's work, by the category of the kernel that does it.
_USER = "user_kernel"


class OwnKernels(msgspec.Struct, frozen=True):
    """What is known of the user's kernels.

    ``launches``: stance, name → programs and threads; ``float64``: name → numbers that compiled
    code passes as float64.
    """

    launches: Mapping[tuple[str, str], tuple[int, int]]
    float64: Mapping[str, list[str]]

    @classmethod
    def of(cls, groups: Iterable[Row], generated: Iterable[Row]) -> OwnKernels:
        """By rows of ``kernel_groups`` and ``generated_kernels`` of one pass."""
        float64: dict[str, list[str]] = {}
        for row in generated:
            if row["category"] == "user_triton":
                # Inductor writes _0, _1, … behind the name.
                known = float64.setdefault(row["kernel_name"].rpartition("_")[0], [])
                found = float64_arguments(row["source_code"] or "")
                known += [name for name in found if name not in known]
        mine = (row for row in groups if row["category"] == _USER and row["threads"])
        return cls({(r["stance"], r["name"]): (r["programs"], r["threads"]) for r in mine}, float64)


def library_pairs(kernels: Iterable[Kernel], own: OwnKernels) -> list[Row]:
    """Rows of the table, less the pass and rank; ``kernels`` have their time as timed."""
    kernels = list(kernels)
    # No operator launches these; compiled code gives its launch a name of its own.
    triton = {k.name for k in kernels if k.category == _USER and "::" not in k.operator}
    places: dict[_Place, dict[str | None, Sides]] = {}
    groups: dict[tuple[int, bool], Sides] = {}
    for kernel in kernels:
        if kernel.group_id is None:
            continue
        backward = kernel.backward or (kernel.compile_key[1] or "").endswith("backward")
        compiled = kernel.stance == "compiled"
        groups.setdefault((kernel.group_id, backward), ([], []))[compiled].append(kernel)
        if is_generated(kernel):
            continue
        mine = kernel.name in triton
        shape = None if mine else kernel.work[0]
        kind = kernel.name if mine else kernel.operator if shape is None else ""
        shapes = places.setdefault((kernel.group_id, kind, backward), {})
        shapes.setdefault(shape, ([], []))[compiled].append(kernel)
    found: list[Row] = []
    for place, shapes in places.items():
        # (eager shape, compiled shape, kernels of both); what is left of each side is the same.
        pairs = [(shape, shape, sides) for shape, sides in shapes.items() if all(sides)]
        left = [[shape for shape, sides in shapes.items() if not sides[n]] for n in (1, 0)]
        if len(left[0]) == len(left[1]) == 1 and None not in (*left[0], *left[1]):
            (eager,), (other,) = left
            pairs.append((eager, other, (shapes[eager][0], shapes[other][1])))
        for pair in pairs:
            # What no graph holds is the same in both.
            if not place[1] or any(kernel.compile_key[0] for kernel in pair[2][1]):
                row = _row(place, *pair)
                found.append(_of_user(row, own) if place[1] in triton else row)
    found += _by_line(places)
    for (group_id, backward), sides in groups.items():
        library = [[kernel for kernel in side if kernel.category in LIBRARY] for side in sides]
        if library[0] and sides[1] and not library[1]:
            known = {kernel.work[0] for kernel in library[0]}
            shape = known.pop() if len(known) == 1 else None
            found.append(_row((group_id, "", backward), shape, shape, sides))
    return sorted(found, key=lambda row: -row["ms"])


def _by_line(places: Mapping[_Place, Mapping[str | None, Sides]]) -> Iterator[Row]:
    """Operators of one stance only that do the same kind of work at the same line of a group."""
    left: dict[tuple[int | None, bool], list[Kernel]] = defaultdict(list)
    for (group_id, _, backward), shapes in places.items():
        eager, compiled = shapes.get(None, ([], []))
        if not eager or not compiled:
            left[group_id, backward] += eager or compiled
    for (group_id, backward), kernels in left.items():
        for sides in handed_over(kernels).values():
            if any(kernel.compile_key[0] for kernel in sides[1]):
                yield _row((group_id, sides[0][0].operator, backward), None, None, sides)


def _row(place: _Place, shape: str | None, compiled_shape: str | None, sides: Sides) -> Row:
    group_id, kind, backward = place
    longest = [max(side, key=lambda kernel: kernel.ms) for side in sides]
    lined = next((kernel for kernel in longest[::-1] if kernel.line is not None), longest[0])
    row: Row = {
        "group_id": group_id,
        "kind": kind or next((k.category for k in longest if k.category in LIBRARY), "gemm"),
        "shape": shape,
        "compiled_shape": compiled_shape if compiled_shape != shape else None,
        "backward": backward,
        "file": lined.file,
        "line": lined.line,
        "clock": lined.clock,
    }
    for stance, side in zip(("eager", "compiled"), sides, strict=True):
        # What a library's operator copies on its way is not its name.
        slowest = sorted(side, key=lambda kernel: (kernel.category not in LIBRARY, -kernel.ms))
        name = slowest[0].name
        row |= {
            f"{stance}_count": sum(kernel.count for kernel in side if kernel.name == name),
            f"{stance}_ops": list(dict.fromkeys(kernel.operator for kernel in slowest)),
            f"{stance}_kernels": list(dict.fromkeys(kernel.name for kernel in slowest)),
            f"{stance}_ms": sum(kernel.ms for kernel in side),
        }
        for at, column in ((1, "dtype"), (2, "layout")):
            known = {kernel.work[at] for kernel in side}
            row[f"{stance}_{column}"] = known.pop() if len(known) == 1 else None
    differs = ["padded"] if row["compiled_shape"] else []
    loops = sum(kernel.ms for kernel in sides[1] if is_generated(kernel))
    if loops and 2 * loops >= row["compiled_ms"]:  # less is other work of the group
        differs.append("generated")
    elif row["eager_ops"][0] != row["compiled_ops"][0]:
        differs.append("operator")
    elif row["compiled_count"] > row["eager_count"] and not (
        {*LIBRARY} & {k.category for k in longest} or any(map(in_users, sides[1]))
    ):
        differs.append("calls")
    for what in ("dtype", "layout"):
        known = {row[f"eager_{what}"], row[f"compiled_{what}"]}
        if len(known) == 2 and None not in known:
            differs.append(what)
    # On a CPU a kernel is its operator.
    if (
        "generated" not in differs
        and lined.clock == "device"
        and set(row["eager_kernels"]) != set(row["compiled_kernels"])
    ):
        differs.append("kernel")
    return row | {"ms": row["compiled_ms"] - row["eager_ms"], "differs": differs}


def _of_user(row: Row, own: OwnKernels) -> Row:
    """``row`` of a Triton kernel of the user's: its arguments and launches are what may differ."""
    name = row["compiled_kernels"][0]
    float64 = own.float64.get(name, [])
    launches = {own.launches.get((stance, name)) for stance in ("eager", "compiled")}
    differs = ["float64"] if float64 else []
    if len(launches) == 2 and None not in launches:
        differs.append("launch")
    return row | {"kind": _USER, "differs": differs, "float64_arguments": float64}
