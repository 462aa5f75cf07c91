"""
## What it finds
A `torch.compile` call that torch refuses: `mode=` together with `options=`, a backend, mode, option
or keyword that this torch does not know, a value of the wrong type; a backend of the script's own
that does not take `mode=` or `options=`.

## Why it costs
The script ends there. If it catches the error and goes on, everything runs in eager.

## Evidence
The error that torch.compile, or the backend at the first call, raised, with the arguments. What
torch offers instead is taken from its own message or, for backends, from the list of the torch that
ran.

An error if it ended the script; a warning if the script went on without any compiled code;
information if other calls of torch.compile worked.

## What to do
Write the argument as torch takes it. A mode is a set of options, which
`torch._inductor.list_mode_options(mode)` gives, so that more can be added in one dict.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- torch/_inductor/__init__.py, `list_mode_options`, `list_options`
- torch/_dynamo/backends/registry.py, `lookup_backend`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traceview.rules import _arguments, _failures
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Severity,
    Tables,
    about_region,
    compile_call,
    first_rank,
    rows,
    shorten,
)

CODE = "TV114"
NEEDS = frozenset({"regions", "runs"})

#: As much of a message as distinguishes it from another one.
_HEAD = 200
_BACKEND = re.compile(
    r"backend='(?P<name>[^']+)' raised:\s*TypeError: \S+\(\) got an unexpected keyword argument "
    r"'(?P<word>mode|options)'"
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per torch.compile call that raised because of its arguments."""
    regions = first_rank(rows(tables, "regions"))
    runs = first_rank(rows(tables, "runs"))
    for failure in _failures.failures(tables, _BACKEND):
        yield _backend_refuses(failure, regions)
    seen = set()
    for region in regions:
        fault, place = _arguments.fault(region), compile_call(region)
        if fault is None or (fault.title, place) in seen:
            continue
        seen.add((fault.title, place))
        yield Finding(
            code=CODE,
            rule="cap-bad-args",
            severity=_severity(region, runs, compiled=any(row["calls"] for row in regions)),
            title=fault.title,
            explanation=fault.why,
            cost=Cost(about="nothing of it is compiled"),
            confidence="measured",
            location=place,
            about=about_region(region),
            evidence=(
                Evidence(
                    f"torch.compile({region['name']}) raised {shorten(region['error'], _HEAD)}",
                    "regions",
                ),
            ),
            what_to_do=fault.remedy,
            snippet=fault.snippet,
        )


def _backend_refuses(failure: _failures.Failure, regions: Sequence[Row]) -> Finding:
    """A callable that torch passes the keyword on to, at the first call."""
    name, word = failure.found["name"], failure.found["word"]
    given = (row for row in regions if row["backend_is_callable"] and row[word] is not None)
    region = next(given, None)
    return Finding(
        code=CODE,
        rule="cap-bad-args",
        severity=failure.severity,
        title=f"The backend {name}() does not take {word}=",
        explanation=f"torch.compile passes {word}= on to the backend, at the first call.",
        cost=Cost(about="nothing of it is compiled"),
        confidence="measured",
        location=compile_call(region) if region else failure.place,
        about=failure.about,
        evidence=failure.evidence,
        what_to_do=f"Remove {word}=, or let {name}() take **kwargs.",
    )


def _severity(region: Row, runs: Sequence[Row], *, compiled: bool) -> Severity:
    """Whether this very error ended the script; if not, whether it compiled anything else."""
    message = region["error"].partition(": ")[2][:_HEAD]
    if any((row["error_message"] or "")[:_HEAD] == message for row in runs):
        return "error"
    return "info" if compiled else "warning"
