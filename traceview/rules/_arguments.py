"""What torch says of arguments of torch.compile that it refuses, and what to write instead.

Names that come close are taken from torch's own message, for backends from the list of the torch
that ran.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from traceview.rules._rows import Row
from traceview.rules.finding import Snippet

#: Keywords of torch.compile in every torch that traceview supports.
_KEYWORDS = ("fullgraph", "dynamic", "backend", "mode", "options", "disable")
#: Backends of torch's own tests are registered as all others are.
_FOR_TESTS = "_TESTING_ONLY"
_QUOTED = re.compile(r"'([^']+)'")


class Fault(NamedTuple):
    """What is wrong, why, and what to write instead."""

    title: str
    why: str
    remedy: str
    snippet: Snippet | None = None


def fault(region: Row) -> Fault | None:
    """What the error of a torch.compile call says; None if it is not about the arguments."""
    for pattern, explain in _MESSAGES:
        if found := pattern.search(region["error"] or ""):
            return explain(region, found)
    return None


def _both(region: Row, _found: re.Match[str]) -> Fault:
    mode = region["mode"] or "default"
    merged = f'{{**torch._inductor.list_mode_options("{mode}"), {_own_options(region)}}}'
    return Fault(
        f"torch.compile({region['name']}) is given mode= and options=, and takes one of them",
        "A mode is itself a set of options, so torch takes either and refuses both.",
        "Put the mode's options and your own into one dict.",
        Snippet("python", f"torch.compile(..., options={merged})"),
    )


def _backend(region: Row, found: re.Match[str]) -> Fault:
    name = found["name"]
    offered = [each for each in region["backends_offered"] or () if not each.endswith(_FOR_TESTS)]
    instead = _close(name, offered)
    advice = f'Write backend="{instead}".' if instead else "Leave backend= out."
    return Fault(
        f'backend="{name}" is no backend of this torch{_did_you_mean(instead)}',
        "torch.compile looks backends up by name: its own, those of installed packages, and those "
        "that the script registered before."
        + (f" There are: {', '.join(offered)}." if offered else ""),
        f"{advice} If the name is another package's, that is not installed or not imported yet.",
    )


def _option(_region: Row, found: re.Match[str]) -> Fault:
    name, known = found["name"], _QUOTED.findall(found["known"])
    instead = _close(name.replace("-", "_"), known)
    return Fault(
        f'options= has "{name}", which Inductor does not know{_did_you_mean(instead)}',
        f"Options are Inductor's own settings ({len(known):,} in this torch), with dots for nested "
        'ones: "triton.cudagraphs".',
        (f'Write "{instead}".' if instead else "Leave it out.")
        + " torch._inductor.list_options() lists all of them.",
    )


def _type(_region: Row, found: re.Match[str]) -> Fault:
    return Fault(
        f'options= gives "{found["name"]}" a {found["got"]}, and it is a {found["wanted"]}',
        "Inductor checks that a setting keeps the type of its default.",
        f'Give "{found["name"]}" a value of type {found["wanted"]}.',
    )


def _mode(_region: Row, found: re.Match[str]) -> Fault:
    known = [name.strip() for name in found["known"].split(",")]
    instead = _close(found["name"].replace("_", "-"), known)
    return Fault(
        f'mode="{found["name"]}" is no mode of torch.compile{_did_you_mean(instead)}',
        f"This torch has the modes {', '.join(known)}.",
        f'Write mode="{instead}".' if instead else "Leave mode= out.",
    )


def _keyword(_region: Row, found: re.Match[str]) -> Fault:
    instead = _close(found["name"], _KEYWORDS)
    return Fault(
        f"torch.compile has no argument {found['name']}={_did_you_mean(instead)}",
        f"It takes {', '.join(_KEYWORDS)}, and a few more in newer versions.",
        f"Write {instead}=." if instead else "Leave it out.",
    )


_MESSAGES: tuple[tuple[re.Pattern[str], Callable[[Row, re.Match[str]], Fault]], ...] = (
    (re.compile(r"Either mode or options can be specified"), _both),
    (re.compile(r"Invalid backend: ['\"](?P<name>[^'\"]*)['\"]"), _backend),
    (
        re.compile(
            r"Unexpected optimization option (?P<name>.+?), known options are (?P<known>.*)"
        ),
        _option,
    ),
    (
        re.compile(
            r"Unexpected type of attr (?P<name>\S+), got (?P<got>\w+) should be (?P<wanted>\w+)"
        ),
        _type,
    ),
    (re.compile(r"Unrecognized mode=(?P<name>.*?), should be one of: (?P<known>.*)"), _mode),
    (re.compile(r"\bcompile\(\) got an unexpected keyword argument '(?P<name>\w+)'"), _keyword),
)


def _own_options(region: Row) -> str:
    """The script's own options as they stand inside a dict display."""
    try:
        given = json.loads(region["options"] or "{}")
    except ValueError:
        given = None
    plain = (bool, int, float, str)
    if not isinstance(given, dict) or not all(isinstance(v, plain) for v in given.values()):
        return "**options"
    return ", ".join(f"{json.dumps(str(key))}: {value!r}" for key, value in given.items())


def _close(name: str, known: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(name, known, n=1)), None)


def _did_you_mean(instead: str | None) -> str:
    return f' (did you mean "{instead}"?)' if instead else ""
