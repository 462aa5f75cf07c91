"""The rules' pages: ``python -m traceview.rules.docs`` prints docs/rules.md."""

from __future__ import annotations

import sys

from traceview.rules.needs import in_words
from traceview.rules.registry import SECTIONS, Rule, catalogue, severities

_INTRODUCTION = """\
# Rules

Made from the rules' own docstrings by `python -m traceview.rules.docs > docs/rules.md`.
`traceview explain gb-item` prints one of them. Codes are stable: TV1xx graph capture, TV2xx guards
and recompiles, TV4xx Inductor and kernels, TV5xx launches and cudagraphs, TV6xx compile time, TV9xx
the measurement itself.
"""


def page(rule: Rule) -> str:
    """One rule as Markdown, headed by its name; ends with a newline."""
    words, _ = in_words(sorted(rule.needs))
    grades = " or ".join(severities(rule))
    parts = [f"# {rule.name} ({rule.code})", f"Severity: {grades}. Reads {words}."]
    parts += [f"## {section}\n\n{rule.sections[section]}" for section in SECTIONS]
    return "\n\n".join(parts) + "\n"


def book() -> str:
    """All rules as one Markdown page, with a table of them at the top."""
    rows = ["| code | rule | finds |", "| --- | --- | --- |"]
    rows += [
        f"| {rule.code} | [{rule.name}](#{rule.name}-{rule.code.lower()}) | {rule.summary} |"
        for rule in catalogue()
    ]
    pages = [_one_level_down(page(rule)) for rule in catalogue()]
    return "\n".join([_INTRODUCTION, *rows, "", *pages]).rstrip("\n") + "\n"


def _one_level_down(text: str) -> str:
    return (
        "\n".join(f"#{line}" if line.startswith("#") else line for line in text.splitlines()) + "\n"
    )


if __name__ == "__main__":
    sys.stdout.write(book())
