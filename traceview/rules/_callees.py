"""What Dynamo could not trace at a break, as torch names it, and what to do instead."""

from __future__ import annotations

import re

from traceview.rules._breaks import Site

#: Where torch names the callee, by the type of the break: in its context or its explanation.
_NAMES = (
    re.compile(r"module: (?P<module>[\w.]+), qualname: (?P<name>[\w.<>]+)"),
    re.compile(r"qualname: (?P<name>[\w.<>]+)"),
    re.compile(r"method `(?P<name>\w+)` of class `(?P<module>[\w.]+)`"),
    re.compile(r"builtin operator `(?P<name>\w+)`"),
    re.compile(r"trace the function `(?P<name>[^`]+)`"),
    re.compile(r"enter a `(?P<name>[^`]+)` context manager"),
    re.compile(r"unsupported builtin (?P<name>[\w.]+\w)"),  # torch 2.6
)
_CLOCK = re.compile(r"time\.(?:perf_counter|monotonic|time|process_time|thread_time)(?:_ns)?")
#: ``random.random`` and its like are methods of one hidden ``random.Random``.
_RANDOM = re.compile(r"(?:random\.)?Random\.\w+|random\.\w+")
#: What to do where Python draws a random number. A choice that changes is one variant for each way.
DRAW = (
    "Draw with torch.rand(()) and choose with torch.where: that keeps one graph, in which both "
    "sides run. Flags that are drawn before the call make a variant for every combination."
)
_SWITCH = re.compile(r"torch\._dynamo\.config\.(\w+) ?= ?True")


def callee(site: Site) -> str | None:
    """The callee as torch names it, ``zlib.crc32``; None where that would tell the user nothing."""
    for row in site.rows:
        for text in filter(None, (row["context"], row["explanation"], row["gb_type"])):
            for pattern in _NAMES:
                if found := pattern.search(text):
                    parts = found.groupdict()
                    name = ".".join(filter(None, (parts.get("module"), parts["name"])))
                    return None if name.startswith("type.") else name
    return None


def is_clock(name: str | None) -> bool:
    return _CLOCK.fullmatch(name or "") is not None


def is_random(name: str | None) -> bool:
    """Python's own random numbers."""
    return _RANDOM.fullmatch(name or "") is not None


def switch(site: Site) -> str | None:
    """The setting of ``torch._dynamo.config`` that torch's hints say would make it traceable."""
    hints = (hint for row in site.rows for hint in row["hints"] or ())
    return next((match[1] for hint in hints if (match := _SWITCH.search(hint))), None)
