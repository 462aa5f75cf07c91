"""Errors in the compiler that reached the script: the one that ended it, and failed compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from traceview.derive.facts.breaks import errors_suppressed
from traceview.rules.kit import (
    Evidence,
    Location,
    Row,
    Severity,
    Tables,
    about,
    code_object,
    first_rank,
    from_row,
    rows,
    shorten,
)
from traceview.torchtext.frames import first_user_frame, parse_traceback


class Failure(msgspec.Struct, frozen=True):
    """One kind of error. ``place``: the user's line that it is about, or that raised it.

    ``ended``: it ended the script; otherwise the script caught it and went on in eager.
    """

    found: re.Match[str]
    place: Location | None
    evidence: tuple[Evidence, ...]
    about: frozenset[str]
    ended: bool

    @property
    def severity(self) -> Severity:
        return "error" if self.ended else "warning"


def failures(tables: Tables, pattern: re.Pattern[str]) -> Iterator[Failure]:
    """Errors whose message ``pattern`` finds, one for each different match.

    None where errors are suppressed: a rule of its own reports that.
    """
    if errors_suppressed(tables):
        return
    runs = [row for row in first_rank(rows(tables, "runs")) if row["error_message"]]
    compiles = first_rank(rows(tables, "compiles", outcome="failed"))
    kinds: dict[str, list[tuple[re.Match[str], Row]]] = {}
    for row in (*runs, *compiles):
        if found := pattern.search(_message(row)):
            kinds.setdefault(found[0], []).append((found, row))
    for matches in kinds.values():
        yield _failure(matches)


def _failure(matches: list[tuple[re.Match[str], Row]]) -> Failure:
    found = matches[0][0]
    runs = [row for _, row in matches if "error_type" in row]
    compiles = [row for _, row in matches if "fail_reason" in row]
    traced = (_traced(row) for row in (*compiles, *runs))
    raised = (_raised(row) for row in (*runs, *compiles))
    return Failure(
        found,
        next(filter(None, (*traced, *raised)), None),
        (
            *(Evidence(f"{row['error_type']}: {shorten(found[0], 300)}", "runs") for row in runs),
            *(
                from_row(f"compile {row['compile_id']} failed: {row['fail_type']}", "compiles", row)
                for row in compiles[:2]
            ),
        ),
        about(*compiles),
        ended=bool(runs),
    )


def _message(row: Row) -> str:
    return str(row.get("error_message") or row.get("fail_reason") or "")


def _traced(row: Row) -> Location | None:
    """The user's innermost line that was being traced, as torch's message quotes it."""
    _, quoted, stack = _message(row).partition("from user code:")
    at = first_user_frame(parse_traceback(stack)) if quoted else None
    if at is None or at.line is None:
        return None
    return Location(at.file, at.line, at.function)


def _raised(row: Row) -> Location | None:
    """The user's innermost line in the traceback; of a compile, its code object."""
    if "fail_reason" in row:
        return code_object(row)
    file, line = row["error_file"], row["error_line"]
    return Location(file, line, row["error_function"]) if file and line is not None else None
