"""What a log is, by its first bytes. A name decides only where the content says nothing."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Literal

Kind = Literal[
    "structured",
    "textlog",
    "stderr",
    "kineto",
    "chromium",
    "events",
    "manifest",
    "empty",
    "unknown",
]
#: What of a file is looked at.
HEAD_BYTES = 1 << 18

#: A line of torch's loggers, up to the place in the source that wrote it.
STAMP = rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d{1,18} +(?:[A-Za-z]:)?[^:\]\n]{1,1024}:\d{1,9}\]"
_STRUCTURED = re.compile(STAMP + rb' ?\{\s*"')
_TEXTLOG = re.compile(STAMP)
_FOREIGN = re.compile(rb"^(?!\s)(?!(?:\[rank\d{1,6}\]:)?" + STAMP + rb").", re.MULTILINE)
_EVENTS = re.compile(rb'^\{"event": ?"\w+", ?"t": ?\d', re.MULTILINE)
_MANIFEST = re.compile(rb'\s*\{\s*"format": ?\d+,\s*"traceview":')
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
_TRACE = re.compile(rb'"traceEvents"\s*:')
_PHASE = re.compile(rb'"ph"\s*:\s*"\w"')
_COMPILER = re.compile(rb'"cat"\s*:\s*"dynamo_tim')
_STDERR = re.compile(
    rb"^AUTOTUNE \w+\(|^Traceback \(most recent call last\):|\.py:\d+: \w*Warning: ", re.MULTILINE
)
_LOG_SUFFIXES = frozenset((".log", ".err", ".out", ".stderr", ".stdout"))
_BINARY_BYTES = 4096


def kind_of(head: bytes, name: str) -> Kind:
    """The kind of a log that begins with ``head``, unpacked and without line prefixes.

    What torch's loggers wrote is ``textlog`` where nobody else wrote between, else ``stderr``.
    """
    if not head:
        return "empty"
    if _MANIFEST.match(head):
        return "manifest"
    if _STRUCTURED.search(head):
        return "structured"
    if _JSON.match(head):
        if _EVENTS.search(head):
            return "events"
        if _TRACE.search(head) or _PHASE.search(head):
            return "chromium" if _COMPILER.search(head) else "kineto"
    if _TEXTLOG.search(head):
        return "stderr" if _FOREIGN.search(head) else "textlog"
    if b"\0" in head[:_BINARY_BYTES]:
        return "unknown"
    is_log = PurePath(name).suffix.lower() in _LOG_SUFFIXES
    return "stderr" if is_log or _STDERR.search(head) else "unknown"
