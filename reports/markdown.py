"""The diagnosis as GitHub Markdown that fits a ticket: under ``MAX_BYTES``, safe to paste.

Nothing in a log can end a table cell, a fence or a ``<details>``, mention a person or load an
image: whatever a template prints is escaped unless it went through ``code``, ``prose`` or another
filter made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jinja2
from markupsafe import Markup

from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.reports import markdown_text as written
from traceview.reports import phrases, view, words
from traceview.reports.html import templates
from traceview.reports.job import words as jobs
from traceview.words import numbers as fmt

_FEW = 12
_LINKS = 5  # recompiles of one chain of a job
_CUT = "\n\n_The rest is left out to fit an issue tracker; `report.html` has all of it._\n"
#: Ends a part of the page. A form feed in a log is shown as <U+000C>, so it ends none.
_END = Markup("\f")


def render(diagnosis: Diagnosis) -> str:
    """Verdict, facts, findings, then what is folded; beyond the limit whole parts are left out."""
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
            (title, name, value)
            for title, rows in groups
            for name, value in rows[: 2 * written.ROWS]
        ],
    )
    return written.within_limit(page.split(f"{_END}\n"), _CUT)


@cache
def _templates() -> jinja2.Environment:
    def shown(value: object) -> Markup:
        if isinstance(value, Markup):
            return value
        return Markup(written.escape(fmt.MISSING if value is None else str(value)))

    def safe(write: Callable[..., str]) -> Callable[..., Markup]:
        return lambda text, *limits: Markup(write(text or "", *limits))

    made = templates("traceview.reports", shown, keep_trailing_newline=True)
    for name in ("code", "prose", "fenced"):
        made.filters[name] = safe(getattr(written, name))
    made.filters["text"] = safe(written.escape)
    modules = {"words": words, "phrases": phrases, "view": view, "jobs": jobs}
    made.globals.update(modules, everyone=everyone, END=_END, ROWS=written.ROWS, FEW=_FEW)
    return made
