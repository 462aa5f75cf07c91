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

import json
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from traceview.json_errors import NOT_JSON
from traceview.rules import _failures
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Severity,
    Snippet,
    Tables,
    about_region,
    compile_call,
    first_rank,
    rows,
    shorten,
)

CODE = "TV114"
NEEDS = frozenset({"regions", "runs"})
SEVERITIES = ("error", "warning", "info")

#: As much of a message as distinguishes it from another one.
_HEAD = 200
_BACKEND = re.compile(
    r"backend='(?P<name>[^']+)' raised:\s*TypeError: \S+\(\) got an unexpected keyword argument "
    r"'(?P<word>mode|options)'"
)
#: What torch says of the arguments of torch.compile.
_BOTH = re.compile(r"Either mode or options can be specified")
_NO_BACKEND = re.compile(r"Invalid backend: ['\"](?P<name>[^'\"]*)['\"]")
_NO_OPTION = re.compile(
    r"Unexpected optimization option (?P<name>.+?), known options are (?P<known>.*)"
)
_OTHER_TYPE = re.compile(
    r"Unexpected type of attr (?P<name>\S+), got (?P<got>\w+) should be (?P<wanted>\w+)"
)
_NO_MODE = re.compile(r"Unrecognized mode=(?P<name>.*?), should be one of: (?P<known>.*)")
_NO_KEYWORD = re.compile(r"\bcompile\(\) got an unexpected keyword argument '(?P<name>\w+)'")
#: Keywords of torch.compile in every torch that traceview supports.
_KEYWORDS = ("fullgraph", "dynamic", "backend", "mode", "options", "disable")
#: Backends of torch's own tests are registered as all others are.
_FOR_TESTS = "_TESTING_ONLY"
_QUOTED = re.compile(r"'([^']+)'")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per torch.compile call that raised because of its arguments."""
    regions = first_rank(rows(tables, "regions"))
    runs = first_rank(rows(tables, "runs"))
    for failure in _failures.failures(tables, _BACKEND):
        name, word = failure.found["name"], failure.found["word"]
        given = (row for row in regions if row["backend_is_callable"] and row[word] is not None)
        region = next(given, None)
        yield Finding(
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
    seen = set()
    for region in regions:
        fault, place = _fault(region), compile_call(region)
        if fault is None or (fault.title, place) in seen:
            continue
        seen.add((fault.title, place))
        # Whether this very error ended the script; if not, whether it compiled anything else.
        message = region["error"].partition(": ")[2][:_HEAD]
        severity: Severity = "info" if any(row["calls"] for row in regions) else "warning"
        if any((row["error_message"] or "")[:_HEAD] == message for row in runs):
            severity = "error"
        raised = f"torch.compile({region['name']}) raised {shorten(region['error'], _HEAD)}"
        yield Finding(
            code=CODE,
            rule="cap-bad-args",
            severity=severity,
            title=fault.title,
            explanation=fault.why,
            cost=Cost(about="nothing of it is compiled"),
            confidence="measured",
            location=place,
            about=about_region(region),
            evidence=(Evidence(raised, "regions"),),
            what_to_do=fault.remedy,
            snippet=fault.snippet,
        )


class _Fault(NamedTuple):
    """What is wrong, why, and what to write instead."""

    title: str
    why: str
    remedy: str
    snippet: Snippet | None = None


def _fault(region: Row) -> _Fault | None:
    """What the error of a torch.compile call says; None if it is not about the arguments."""
    error = region["error"] or ""
    if _BOTH.search(error):
        mode = region["mode"] or "default"
        merged = f'{{**torch._inductor.list_mode_options("{mode}"), {_own_options(region)}}}'
        return _Fault(
            f"torch.compile({region['name']}) takes mode= or options=, not both",
            "A mode is itself a set of options, so torch takes either and refuses both.",
            "Put the mode's options and your own into one dict.",
            Snippet("python", f"torch.compile(..., options={merged})"),
        )
    if found := _NO_BACKEND.search(error):
        names = [each for each in region["backends_offered"] or () if not each.endswith(_FOR_TESTS)]
        instead, meant = _close(found["name"], names)
        advice = f'Write backend="{instead}".' if instead else "Remove backend=."
        return _Fault(
            f'backend="{found["name"]}" is no backend of this torch{meant}',
            "torch.compile looks backends up by name: its own, those of installed packages, and "
            "those that the script registered before."
            + (f" There are: {', '.join(names)}." if names else ""),
            f"{advice} If the name is another package's, that is not installed or not imported "
            "yet.",
        )
    if found := _NO_OPTION.search(error):
        known = _QUOTED.findall(found["known"])
        instead, meant = _close(found["name"].replace("-", "_"), known)
        return _Fault(
            f'options= has "{found["name"]}", which Inductor does not know{meant}',
            f"Options are Inductor's own settings ({len(known):,} in this torch), with dots for "
            'nested ones: "triton.cudagraphs".',
            (f'Write "{instead}".' if instead else "Remove it.")
            + " torch._inductor.list_options() lists all of them.",
        )
    if found := _OTHER_TYPE.search(error):
        return _Fault(
            f'options= gives "{found["name"]}" a {found["got"]}, and it is a {found["wanted"]}',
            "Inductor checks that a setting keeps the type of its default.",
            f'Give "{found["name"]}" a value of type {found["wanted"]}.',
        )
    if found := _NO_MODE.search(error):
        known = [name.strip() for name in found["known"].split(",")]
        instead, meant = _close(found["name"].replace("_", "-"), known)
        return _Fault(
            f'mode="{found["name"]}" is no mode of torch.compile{meant}',
            f"This torch has the modes {', '.join(known)}.",
            f'Write mode="{instead}".' if instead else "Remove mode=.",
        )
    if found := _NO_KEYWORD.search(error):
        instead, meant = _close(found["name"], _KEYWORDS)
        return _Fault(
            f"torch.compile has no argument {found['name']}={meant}",
            f"It takes {', '.join(_KEYWORDS)}, and a few more in newer versions.",
            f"Write {instead}=." if instead else "Remove it.",
        )
    return None


def _own_options(region: Row) -> str:
    """The script's own options as they stand inside a dict display."""
    try:
        given = json.loads(region["options"] or "{}")
    except NOT_JSON:
        given = None
    plain = (bool, int, float, str)
    if not isinstance(given, dict) or not all(isinstance(v, plain) for v in given.values()):
        return "**options"
    return ", ".join(f"{json.dumps(str(key))}: {value!r}" for key, value in given.items())


def _close(name: str, known: Sequence[str]) -> tuple[str | None, str]:
    """The one of ``known`` that was meant, and the question for a title."""
    instead = next(iter(get_close_matches(name, known, n=1)), None)
    return instead, f' (did you mean "{instead}"?)' if instead else ""
