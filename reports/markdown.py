"""The diagnosis as GitHub Markdown that fits a ticket, and what any such page is written with.

It stays under ``MAX_BYTES`` and is safe to paste: nothing in a log can end a table cell, a fence or
a ``<details>``, mention a person or load an image. Whatever a template prints is escaped unless it
went through ``code``, ``prose`` or another filter made for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import jinja2
from markupsafe import Markup

from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.reports import phrases, view, words
from traceview.reports.html import templates
from traceview.reports.job import words as jobs
from traceview.words import numbers as fmt
from traceview.words.text import clean, one_line

_FEW = 12
_LINKS = 5  # recompiles of one chain of a job
_CUT = "\n\n_The rest is left out to fit an issue tracker; `report.html` has all of it._\n"
#: Ends a part of the page. A form feed in a log is shown as <U+000C>, so it ends none.
_END = Markup("\f")
_SPECIAL = re.compile(r"([\\`*_\[\]#|~!$])")
#: What GitHub links to an issue even behind a backslash, or to a page without ``://``.
_REFERENCE = re.compile(r"(?:#|\bGH-)(?=\d)|\bwww(?=\.)", re.IGNORECASE)
#: What begins a list, a rule or a heading, or is a command to a bot, where a line begins.
_BEGINS = re.compile(r"(?=[-+](?:\s|$)|[-=]{2,}\s*$|/[a-z_]+(?:\s|$))|\d{1,9}(?=[.)](?:\s|$))")
CELL, _PARAGRAPH, _CODE = 160, 1200, 3000
MAX_BYTES = 60_000  # GitHub refuses more than 65,536 characters
ROWS = 20


def render(diagnosis: Diagnosis) -> str:
    """Verdict, facts, findings, then what is folded; beyond the limit whole parts are left out."""
    return within_limit(parts(diagnosis), _CUT)


def parts(diagnosis: Diagnosis) -> list[str]:
    """The same, in the parts that are left out as wholes."""
    job = diagnosis.job
    chains, most = (job.recompiles, _LINKS) if job else (diagnosis.recompiles, None)
    configs = job.configs if job else ()
    groups = view.environment_groups(diagnosis.environment)
    template = _templates().get_template("report.md.j2")
    page = template.render(
        d=diagnosis,
        job=job,
        recompiles=[(chain, link) for chain in chains for link in chain.links[:most]],
        settings=[(row, who, value) for row in configs for who, _, value in jobs.sides(row.sides)],
        environment=[
            (title, name, value) for title, rows in groups for name, value in rows[: 2 * ROWS]
        ],
    )
    return page.split(f"{_END}\n")


@cache
def _templates() -> jinja2.Environment:
    def shown(value: object) -> Markup:
        if isinstance(value, Markup):
            return value
        return Markup(escape(fmt.MISSING if value is None else str(value)))

    def safe(write: Callable[..., str]) -> Callable[..., Markup]:
        return lambda text, *limits: Markup(write(text or "", *limits))

    made = templates("traceview.reports", shown, keep_trailing_newline=True)
    filters: dict[str, Callable[..., str]]
    filters = {"code": code, "prose": prose, "fenced": fenced, "text": escape}
    made.filters.update({name: safe(write) for name, write in filters.items()})
    modules = {"words": words, "phrases": phrases, "view": view, "jobs": jobs}
    made.globals.update(modules, everyone=everyone, END=_END, ROWS=ROWS, FEW=_FEW)
    return made


def within_limit(parts: Iterable[str], cut: str, limit: int = MAX_BYTES) -> str:
    """As many ``parts`` as fit ``limit`` bytes; where some do not, ``cut`` ends the page."""
    page, room = "", limit - len(cut.encode())
    for part in parts:
        if len((page + part).encode()) > room:
            return (page + cut).rstrip("\n")
        page += part
    return page.rstrip("\n")


def details(title: str, body: str) -> str:
    """A folded part; empty without a body."""
    return f"\n<details><summary>{title}</summary>\n\n{body}\n</details>\n" if body else ""


def escape(text: str, limit: int = CELL) -> str:
    """Text on one line with nothing in it that Markdown or HTML would read as its own."""
    bare = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    bare = _SPECIAL.sub(r"\\\1", bare)
    if begins := _BEGINS.match(bare):
        bare = f"{begins[0]}\\{bare[begins.end() :]}"
    bare = _REFERENCE.sub("\\g<0>\u200b", bare)
    # A zero-width space keeps @name, #1 and GH-1 from mentioning anyone or anything and a bare
    # address from being linked.
    return bare.replace("@", "@\u200b").replace("://", ":\u200b//")


def code(text: str, limit: int = CELL) -> str:
    """Inline code; ``|`` would end a table cell even there, so it is written as ``¦``."""
    bare = one_line(text, limit).replace("|", "¦")
    fence = "`" * (_longest_run(bare) + 1)
    pad = " " if bare.startswith("`") or bare.endswith("`") else ""
    return f"{fence}{pad}{bare}{pad}{fence}" if bare else ""


def prose(text: str, limit: int = _PARAGRAPH) -> str:
    """Text whose `inline code` stays code and whose everything else is plain."""
    shown = []
    for index, piece in enumerate(re.split(r"`([^`\n]+)`", one_line(text, limit))):
        if index % 2:
            shown.append(code(piece, limit))
        else:  # one space at either end stays: the piece stands between two others
            bare = escape(piece, limit)
            shown += (" " * piece.startswith(" "), bare, " " * (piece.endswith(" ") and bare != ""))
    return "".join(shown)


def fenced(text: str, language: str, limit: int = _CODE) -> str:
    """A code block whose fence is longer than any run of backticks in it."""
    bare = clean(text, limit).rstrip("\n")
    fence = "`" * max(3, _longest_run(bare) + 1)
    return f"{fence}{language}\n{bare}\n{fence}\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of escaped cells."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
