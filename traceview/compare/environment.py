"""What the two runs did not have in common: versions, machine, variables, settings, rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traceview.compare.model import Difference
from traceview.compare.side import Side
from traceview.compare.values import said
from traceview.diagnosis.model import Diagnosis

#: Names of the facts of an environment by section, in the order in which they are shown.
_FACTS = {
    "versions": (
        "torch_version", "triton_version", "cuda_version", "driver_version", "python_version",
    ),
    "machine": ("device_name", "device_count", "device_capability", "cpu_threads", "platform"),
    "run": ("argv", "rank", "ranks", "step_kind"),
}  # fmt: skip
Values = Mapping[str, str | None]


def differences(before: Side, after: Side) -> tuple[Difference, ...]:
    """Every fact, variable and setting that differs; one that a run did not record does not."""
    found = []
    for section, name, old, new in _compared(before.diagnosis, after.diagnosis):
        if old != new:
            found.append(Difference(section, name, old, new))
    return tuple(found)


Row = tuple[str, str, str | None, str | None]


def _compared(before: Diagnosis, after: Diagnosis) -> Iterator[Row]:
    old, new = before.environment, after.environment
    for section, names in _FACTS.items():
        for name in names:
            if old.get(name) is not None and new.get(name) is not None:
                yield section, name, said(old[name]), said(new[name])
    if _recorded(old) and _recorded(new):
        yield from _joined("variables", _variables(old), _variables(new))
        yield from _settings(old, new)
    yield "traceview", "version", before.traceview, after.traceview
    yield from _joined("rules left out", _left_out(before), _left_out(after))


def _joined(section: str, old: Values, new: Values) -> Iterator[Row]:
    for name in sorted({*old, *new}):
        yield section, name, old.get(name), new.get(name)


def _recorded(environment: Mapping[str, Any]) -> bool:
    """Whether a collector wrote settings down: without one, none is not "all are torch's"."""
    return bool(environment.get("settings") or environment.get("variables"))


def _variables(environment: Mapping[str, Any]) -> Values:
    found = environment.get("variables")
    return {k: said(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Row]:
    """Settings that are not torch's default; where one run has the default, that is its value."""
    ours, theirs = _by_name(old), _by_name(new)
    for section, name in sorted({*ours, *theirs}):
        was, is_ = ours.get((section, name)), theirs.get((section, name))
        default = said((was or is_ or {}).get("default"))
        values = [default if row is None else said(row.get("value")) for row in (was, is_)]
        yield section, name, values[0], values[1]


def _by_name(environment: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    found = environment.get("settings")
    rows = found if isinstance(found, list) else []
    return {
        (str(row.get("section")), str(row.get("name"))): row
        for row in rows
        if isinstance(row, dict)
    }


def _left_out(diagnosis: Diagnosis) -> Values:
    return dict.fromkeys(diagnosis.rules.left_out, "not asked for")
