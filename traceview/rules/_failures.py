"""Errors in the compiler that reached the script: the one that ended it, and failed compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from traceview.derive.facts.breaks import errors_suppressed
from traceview.derive.processes import fails_in_eager
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
from traceview.torchtext.frames import TRACED, first_user_frame, parse_traceback


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
        found = matches[0][0]
        ended = [row for _, row in matches if "error_type" in row]
        failed = [row for _, row in matches if "fail_reason" in row]
        # The user's innermost lines that were being traced, as torch's messages quote them.
        stacks = (_message(row).partition(TRACED)[2] for row in (*failed, *ended))
        traced = (first_user_frame(parse_traceback(stack)) for stack in stacks)
        quoted = (
            Location(at.file, at.line, at.function) for at in traced if at and at.line is not None
        )
        raised = (*map(raised_at, ended), *map(code_object, failed))
        yield Failure(
            found,
            next(filter(None, (*quoted, *raised)), None),
            (
                *(error(row, shorten(found[0], 300)) for row in ended),
                *map(failed_compile, failed[:2]),
            ),
            about(*failed),
            ended=bool(ended),
        )


def own_error(tables: Tables) -> tuple[Row, Row] | None:
    """The run that an error of the script's own ended, and the all-eager run that it ended alike.

    They are one where nothing compiled had been called by then.
    """
    regions = rows(tables, "regions")
    started = any(row["calls"] or row["error"] for row in regions) or not tables.has("regions")
    ended = (row for row in first_rank(rows(tables, "runs")) if row["exit_kind"] == "exit")
    for run in ended:
        if run["error_type"] not in (None, "SystemExit") and not started:
            return run, run
        if eager := fails_in_eager(tables, run):
            return run, eager
    return None


def error(run: Row, message: str) -> Evidence:
    """The error that ended a run, with its ``message`` or a part of it."""
    return Evidence(f"{run['error_type']}: {message}", "runs")


def failed_compile(row: Row, reason: str | None = None) -> Evidence:
    """A compile that failed, with what the error says, else its name."""
    said = row["fail_type"] if reason is None else reason
    return from_row(f"compile {row['compile_id']} failed: {said}", "compiles", row)


def raised_at(run: Row) -> Location | None:
    """The user's innermost line in the traceback that ended a run."""
    file, line = run["error_file"], run["error_line"]
    return Location(file, line, run["error_function"]) if file and line is not None else None


def _message(row: Row) -> str:
    return str(row.get("error_message") or row.get("fail_reason") or "")
