"""
## What it finds
In one sentence, the pattern: what the user's code does.

## Why it costs
What torch has to do because of it.

## Evidence
What is looked for in which table, and where the cost comes from. Information; a warning where ...

## What to do
What to change, and what to do where that is not possible.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_dynamo/config.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import Cost, Finding, Row, Tables, about, code_object, from_row, rows

CODE = "TV130"
#: Tables that it can't do without: `traceview tables RUN` lists them.
NEEDS = frozenset({"compiles"})
SEVERITIES = ("info",)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per compile that shows it."""
    for row in rows(tables, "compiles"):
        if not _shows_it(row):
            continue
        yield Finding(
            code=CODE,
            rule="cap-cached-function",
            severity="info",
            title="The fact first, and the place",
            explanation="What torch does there, and why.",
            cost=Cost(),
            confidence="heuristic",
            location=code_object(row),
            about=about(row),
            evidence=(from_row(f"compile {row['compile_id']}", "compiles", row),),
            what_to_do="What to change.",
        )


def _shows_it(row: Row) -> bool:
    """Fill in: what a row must say to be a finding."""
    return False
