"""From rows to lines of the user's own source."""

from __future__ import annotations

import json
from pathlib import PurePath

from traceview.rules._rows import Row
from traceview.rules.finding import Location

#: Code of torch's own: a break there is not at a line that the user wrote.
_TORCH = "/site-packages/torch/"


def user(row: Row) -> Location | None:
    """``user_file``, ``user_line`` and, where there is one, ``user_function``."""
    return _location(row["user_file"], row["user_line"], row.get("user_function"))


def code_object(row: Row) -> Location | None:
    """First line of the compiled code object."""
    return _location(row["co_filename"], row["co_firstlineno"], row.get("co_name"))


def compile_call(row: Row) -> Location | None:
    """The torch.compile call of a region."""
    return _location(row["call_file"], row["call_line"], row["call_function"])


def in_torch(place: Location | None) -> bool:
    """Whether the line lies in torch's own sources."""
    return place is not None and _TORCH in place.file.replace("\\", "/")


def short(place: Location | None) -> str:
    """``model.py:14``, or ``an unknown line``."""
    return f"{PurePath(place.file).name}:{place.line}" if place else "an unknown line"


def source_text(row: Row) -> str | None:
    """The source line at the inner end of ``user_stack``, as the log quotes it."""
    try:
        stack = json.loads(row["user_stack"] or "[]")
    except ValueError:
        return None
    entries = (
        [entry for entry in stack if isinstance(entry, dict)] if isinstance(stack, list) else []
    )
    same = [entry for entry in entries if entry.get("line") == row["user_line"]]
    code = (same or entries or [{}])[-1].get("code")
    return code.strip() if isinstance(code, str) and code.strip() else None


def _location(file: str | None, line: int | None, function: str | None) -> Location | None:
    return Location(file, line, function) if file and line is not None else None
