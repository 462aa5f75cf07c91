"""
## What it finds
An error of the script's own, which ends the script without torch.compile as well.

## Why it costs
The script ends there, and nothing about compiling changes that. What the compiler logs at that line
(a graph break, a function left in eager) is its own way of meeting the error.

## Evidence
The script ended with an exception, and run again all in eager it ended with the same one: the same
type, or one raised at a line that torch was tracing when it raised an error of its own. Or nothing
compiled had been called by then. The traceback has the user's own lines. Not reported if
torch.compile itself refuses its arguments.

## What to do
Fix the line that raises. `torch._dynamo.explain(f)(x)` returns one object: the old form, which
returned six values, is gone.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_dynamo/eval_frame.py, `explain`
- torch/_dynamo/backends/debugging.py, `ExplainOutput`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.places import frames
from traceview.rules import _failures
from traceview.rules.finding import THE_END
from traceview.rules.kit import (
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    rows,
    short,
    shorten,
)

CODE = "TV122"
NEEDS = frozenset({"runs", "runs:baseline"})
SEVERITIES = ("error",)
FOLLOWS = frozenset({"cap-customop-no-autograd"})

_EXPLAINED = "ExplainOutput object"
_EXPLAIN = """\
explained = torch._dynamo.explain(f)(x)
print(explained.graph_break_count, explained.break_reasons)"""
#: Lines of a traceback: the outermost ones only lead there.
_MOST_FRAMES = 8


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding, at the line that raises."""
    found = tables.once(_failures.own_error)
    if not found:
        return
    run, own = found
    place = _failures.raised_at(own)
    raised = f"The script raises {own['error_type']} at {short(place)}"
    message = shorten((own["error_message"] or "").strip().partition("\n")[0], 300)
    title, after = f"{raised} before it calls anything compiled", "torch.compile is not involved"
    # The user's own lines that the exception passed, outermost first.
    known = tables["source_lines"].select("file", "line", "text").iter_rows()
    texts = {(file, line): text.strip() for file, line, text in known}
    evidence = []
    for at in frames(own["error_stack"])[-_MOST_FRAMES:]:
        where = f"{short(Location(at.file, at.line or 0))} in {at.function}"
        text = texts.get((at.file, at.line))
        evidence.append(Evidence(f"{where}: {text}" if text else where, "runs"))
    evidence.append(_failures.error(own, message))
    if run is not own:
        title = f"{raised} in eager as well"
        after = "run again without compiling anything, the script ended with the same error"
        evidence.append(Evidence(f"compiled, the same line raised {run['error_type']}", "runs"))
    # The compiler's own way of meeting the error at that line follows from it.
    breaks = rows(tables, "break_sites", file=own["error_file"], line=own["error_line"])
    explained = _EXPLAINED in message
    yield Finding(
        code=CODE,
        rule="cap-fails-in-eager",
        severity="error",
        title=title,
        explanation=f"It is an error of the script's own: {after}.",
        cost=THE_END,
        confidence="measured",
        location=place,
        about=frozenset(code for row in breaks for code in row["functions"]),
        evidence=tuple(evidence),
        what_to_do=(
            "explain(f)(x) returns one object with named fields, not six values: read those."
            if explained
            else "Fix this line first, and run traceview again."
        ),
        snippet=Snippet("python", _EXPLAIN) if explained else None,
    )
