"""report.html: one self-contained page. No network, no script needed, under ``MAX_BYTES``."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec.structs import replace

from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.reports import agreement, links, phrases, pictures, view, words
from traceview.reports import environment as facts
from traceview.reports.bytecode import Beside
from traceview.reports.job import pictures as by_rank
from traceview.reports.job import timeline as ranks_over_time
from traceview.reports.job import words as jobs
from traceview.reports.view import Limits, View
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import clean, one_line

MAX_BYTES = 2_000_000
# A template and its styles.
_REPORT = ("report.html.j2", ("report.css", "pictures.css"))
_POSTMORTEM = ("job.html.j2", ("report.css", "pictures.css", "job.css"))
#: Characters of code in colours on a post-mortem's page, where code comes last: they take long.
_JOB_COLOURED = 20_000
# Tried in turn until the page fits: what goes first is what the run folder holds anyway.
_LEVELS = (
    Limits(text=6000, rows=400, code=600_000, coloured=200_000, one_code=60_000),
    Limits(text=2000, rows=120, code=200_000, coloured=100_000, one_code=20_000),
    Limits(text=600, rows=40, code=80_000, coloured=80_000, one_code=8_000),
    Limits(text=160, rows=15, code=20_000, coloured=20_000, one_code=2_000),
)


def render(diagnosis: Diagnosis) -> str:
    """The whole page. Where it would pass ``MAX_BYTES`` it is rendered again with less detail."""
    page = ""
    for limits in _LEVELS:
        page = _render(diagnosis, limits)
        if len(page.encode()) <= MAX_BYTES:
            return page
    return page


def _render(diagnosis: Diagnosis, limits: Limits) -> str:
    script = _asset("report.js")
    page, styles = _REPORT if diagnosis.job is None else _POSTMORTEM
    if diagnosis.job is not None:
        limits = replace(limits, coloured=min(limits.coloured, _JOB_COLOURED))
    return (
        _environment(limits)
        .get_template(page)
        .render(
            d=diagnosis,
            view=View(diagnosis, limits),
            style=Markup("".join(map(_asset, styles))),
            script=Markup(script),
            script_hash=_csp_hash(script),
        )
    )


@cache
def _environment(limits: Limits) -> Environment:
    """Autoescape on, undefined names are errors, every printed value goes through ``shown``.

    Kept, since it keeps its templates compiled, which takes as long as to fill them.
    """

    def shown(value: object) -> object:
        if value is None:
            return fmt.MISSING
        if isinstance(value, str) and not isinstance(value, Markup):
            return clean(value, limits.text)
        return value

    environment = Environment(
        loader=PackageLoader("traceview.reports"),
        bytecode_cache=Beside(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(fmt=fmt, words=words, pictures=pictures, links=links, names=names)
    environment.globals.update(phrases=phrases, agreement=agreement, everyone=everyone)
    environment.globals.update(environment_groups=facts.environment_groups)
    environment.globals.update(jobs=jobs, by_rank=by_rank, ranks_over_time=ranks_over_time)
    environment.filters["prose"] = lambda text: view.prose(text, limits.text)
    environment.filters["inline"] = lambda text: view.inline(clean(text, limits.text))
    environment.filters["capfirst"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["path"] = view.breakable
    environment.filters["short"] = lambda text, limit=120: one_line(str(text), limit)
    return environment


def _asset(name: str) -> str:
    return (files("traceview.reports") / "templates" / name).read_text(encoding="utf-8")


def _csp_hash(script: str) -> str:
    """The hash by which the page's Content-Security-Policy knows our one script."""
    digest = hashlib.sha256(script.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
