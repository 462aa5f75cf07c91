"""Graph breaks that ``fullgraph=True`` makes errors: the log has them as compiles that failed.

Nothing is kept of such a compile: where the script catches the error, each call tries again.
"""

from __future__ import annotations

import re
from statistics import median

from traceview.rules import _failures, _places
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost
from traceview.tables import Tables
from traceview.torchtext.frames import StackFrame, stack_json
from traceview.torchtext.graph_breaks import parse_graph_break

ORIGIN = "fullgraph"
"""What stands in a row's ``origin`` here."""

#: The exception's name; torch raises it to the script only where no break is allowed.
_ERROR = "Unsupported"
#: From so many failed compiles of one function on it is tried again and again.
_AGAIN = 3


def breaks(tables: Tables) -> list[Row]:
    """They as rows of table ``graph_breaks``; none where errors are suppressed."""
    return [_as_break(row) for row in tables.once(_failed)]


def ended(tables: Tables) -> bool:
    """Whether one of them ended the script."""
    return any(row["error_type"] == _ERROR for row in first_rank(rows(tables, "runs")))


def cost(tables: Tables, found: tuple[Row, ...]) -> Cost:
    """What compiling in vain takes: of each step where it goes on, seconds where it does not."""
    if ended(tables):
        return Cost(about="the script ends")
    keys = {row["compile_key"] for row in found}
    spent = [
        row["duration_us"] / 1e3
        for row in tables.once(_failed)
        if row["compile_key"] in keys and row["duration_us"] is not None
    ]
    about = "spent on compiling in vain; what compiled code would save is not known"
    tried = [
        row
        for row in first_rank(rows(tables, "calls", stance="compiled"))
        if row["outermost"] and row["compiles_inside"] and row["step"] is not None
    ]
    steps = len({row["step"] for row in tried})
    if len(spent) < _AGAIN or not steps:
        return Cost(None, sum(spent) / 1e3 if spent else None, about)
    each = sum(row["compiles_inside"] for row in tried) / steps
    return Cost(median(spent) * each, None, f"of each step {about}")


def _failed(tables: Tables) -> list[Row]:
    if _failures.suppressed(tables):
        return []
    found = []
    for row in first_rank(rows(tables, "compiles", outcome="failed")):
        region = _places.region_of(tables, row["compile_key"])
        if row["fail_type"] == _ERROR and (ended(tables) or (region and region["fullgraph"])):
            found.append(row)
    return found


def _as_break(row: Row) -> Row:
    text = row["fail_reason"] or ""
    told = parse_graph_break(text)
    file, line = row["fail_user_file"], row["fail_user_line"]
    known = file is not None and line is not None
    at = StackFrame(file, line, row["co_name"], _code(text, line)) if known else None
    return {
        **dict.fromkeys(("pass", "rank", "attempt", "raw_file", "raw_line")),
        **{key: row[key] for key in ("compile_key", "compile_id")},
        "gb_id": told.gb_id,
        "gb_type": told.gb_type,
        "reason": told.reason,
        "explanation": told.explanation,
        "hints": list(told.hints),
        "context": told.context,
        "frame_skipped": False,
        "user_file": file,
        "user_line": line,
        "user_function": row["co_name"],
        "user_stack": stack_json((at,)) if at else None,
        "origin": ORIGIN,
    }


def _code(text: str, line: int) -> str | None:
    """The source line, where torch's message quotes it."""
    found = re.search(rf"\bline {line}, in \w+, code: (.+)", text)
    return found[1].strip() if found else None
