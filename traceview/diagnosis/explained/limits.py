"""Kernels and steps beside what the device can do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msgspec.structs import fields

from traceview.diagnosis.explanation import Ceiling, KernelLimit, StepLimit
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables
from traceview.words.numbers import together

Row = dict[str, Any]
#: Kernels of one stance that a report has room for.
MOST_KERNELS = 60
#: A limit so many times the step itself is none: the machine was held up when it was measured.
BELIEVABLE = 1.1
_SHOWN = ("limit_ms", "step_ms", "fusible_ms", "launch_idle_ms")


def ceilings(tables: Tables, focus: Focus) -> tuple[Ceiling, ...]:
    """Ceilings of the device, as they were measured."""
    names = [field.name for field in fields(Ceiling)]
    return tuple(
        Ceiling(**{name: row[name] for name in names})
        for row in focus.rows(tables["ceilings"])
        if row["kind"] and row["value"] is not None
    )


def kernel_limits(tables: Tables, focus: Focus) -> tuple[KernelLimit, ...]:
    """The dearest kernels of each stance, dearest first."""
    names = [field.name for field in fields(KernelLimit)]
    found: list[Row] = []
    rows = focus.rows(tables["kernel_limits"])
    for stance in ("eager", "compiled"):
        mine = [row for row in rows if row["stance"] == stance]
        found += sorted(mine, key=lambda row: -row["ms"])[:MOST_KERNELS]
    found.sort(key=lambda row: -row["ms"])
    return tuple(KernelLimit(**{name: row[name] for name in names}) for row in found)


def step_limits(tables: Tables, focus: Focus) -> tuple[StepLimit, ...]:
    """One row a stance, with its sentence."""
    names = [field.name for field in fields(StepLimit) if field.name != "sentence"]
    clocks = {row["stance"]: row["clock"] for row in focus.rows(tables["kernel_limits"])}
    rows = focus.rows(tables["step_limits"])
    return tuple(
        StepLimit(
            **{name: row[name] for name in names},
            sentence=sentence(row, clocks.get(row["stance"]) or "host"),
        )
        for stance in ("eager", "compiled")
        for row in rows
        if row["stance"] == stance
    )


def sentence(row: Row, clock: str) -> str:
    """What a step would take at the limit, what fusing could save, what waits for launches."""
    shown = [name for name in _SHOWN if row[name]]
    said = together(*(row[name] for name in shown)) if shown else ()
    return " ".join(_parts(row, dict(zip(shown, said, strict=True)), clock))


def _parts(row: Row, said: dict[str, str], clock: str) -> Iterator[str]:
    if (row["limit_ms"] or 0.0) > BELIEVABLE * (row["step_ms"] or math.inf):
        yield (
            f"This {row['stance']} step takes {said['step_ms']}, less than the {said['limit_ms']} "
            "of the limit: the machine was slower when that was measured, so no limit is known."
        )
        return
    if "limit_ms" in said:
        takes = f"; it takes {said['step_ms']}" if "step_ms" in said else ""
        idle = ", without idle" if clock == "device" else ""
        yield (
            f"At the limit this {row['stance']} step would take {said['limit_ms']} of {clock} time"
            f"{idle}{takes}{_basis(row)}."
        )
    elif row["known_ms"]:
        what = "device" if clock == "device" else "processor"
        yield f"What the {what} can do was not measured, so no limit is known."
    else:
        yield "No kernel's bytes or operations are known, so no limit is."
    if "fusible_ms" in said:
        yield f"Fusing all that is left could save at most {said['fusible_ms']}."
    elif row["fusible_ms"] is not None:
        yield "Nothing is left to fuse."
    elif row["stance"] == "compiled":
        yield "What fusing could still save is not known: there is no generated code."
    if "launch_idle_ms" in said:
        yield f"{said['launch_idle_ms']} is launch idle."
    elif row["launch_idle_ms"] is not None:
        yield "Nothing is launch idle."


def _basis(row: Row) -> str:
    """Which part of the busy time the limit rests on."""
    if not row["busy_ms"] or row["known_ms"] is None:
        return ""
    share = row["known_ms"] / row["busy_ms"]
    if share > 0.995:
        return ""
    return (
        f" (bytes or operations are known for {100 * share:.0f} % of the busy time; the rest "
        "counts as it is)"
    )
