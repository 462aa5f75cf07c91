"""Errors of torch's that reached the script: what ended it, and compiles that failed in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from traceview.rules import _places
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Evidence, Location, Severity
from traceview.tables import Tables
from traceview.torchtext.frames import first_user_frame, parse_traceback
from traceview.words.text import shorten


class Failure(msgspec.Struct, frozen=True):
    """One kind of error. ``place``: the user's line that it is about, or that raised it.

    ``ended``: it ended the script; else somebody caught it, and the script went on in eager.
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

    None where errors are suppressed: nobody saw them, and that is a rule of its own.
    """
    if suppressed(tables):
        return
    runs = [row for row in first_rank(rows(tables, "runs")) if row["error_message"]]
    compiles = first_rank(rows(tables, "compiles", outcome="failed"))
    kinds: dict[str, list[tuple[re.Match[str], Row]]] = {}
    for row in (*runs, *compiles):
        if found := pattern.search(_message(row)):
            kinds.setdefault(found[0], []).append((found, row))
    for matches in kinds.values():
        yield _failure(matches)


def suppressed(tables: Tables) -> bool:
    """Whether torch was told to go on in eager after an error, without a word to the script."""
    switches = (
        row["name"] in ("suppress_errors", "TORCHDYNAMO_SUPPRESS_ERRORS")
        and row["value"] in ("True", "1")
        for row in rows(tables, "environment")
    )
    return any(switches) or bool(rows(tables, "warnings", kind="suppressed_failure"))


def _failure(matches: list[tuple[re.Match[str], Row]]) -> Failure:
    found = matches[0][0]
    runs = [row for _, row in matches if "error_type" in row]
    compiles = [row for _, row in matches if "fail_reason" in row]
    places = (_place(row) for row in (*compiles, *runs))
    raised = (_raised(row) for row in (*runs, *compiles))
    return Failure(
        found,
        next(filter(None, (*places, *raised)), None),
        (
            *(Evidence(f"{row['error_type']}: {shorten(found[0], 300)}", "runs") for row in runs),
            *(
                from_row(f"compile {row['compile_id']} failed: {row['fail_type']}", "compiles", row)
                for row in compiles[:2]
            ),
        ),
        _places.about(*compiles),
        ended=bool(runs),
    )


def _message(row: Row) -> str:
    return str(row.get("error_message") or row.get("fail_reason") or "")


def _place(row: Row) -> Location | None:
    """The user's innermost line that was being traced, as torch's message quotes it."""
    _, quoted, stack = _message(row).partition("from user code:")
    at = first_user_frame(parse_traceback(stack)) if quoted else None
    if at is None or at.line is None:
        return None
    return Location(at.file, at.line, at.function)


def _raised(row: Row) -> Location | None:
    """The user's innermost line in the traceback; of a compile, its code object."""
    if "fail_reason" in row:
        return _places.code_object(row)
    file, line = row["error_file"], row["error_line"]
    return Location(file, line, row["error_function"]) if file and line is not None else None
