"""A comparison as one self-contained page: no network, no script, light and dark."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traceview.compare.model import Comparison
from traceview.reports import view
from traceview.reports import words as shared
from traceview.reports.bytecode import Beside
from traceview.reports.compare import words
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import clean, one_line

MAX_BYTES = 2_000_000


class Limits(msgspec.Struct, frozen=True):
    """Characters of a text and rows of a table that a page has room for."""

    text: int
    rows: int


# Tried in turn until the page fits: --json has everything.
_LEVELS = (Limits(2000, 400), Limits(600, 120), Limits(160, 25))


def render(comparison: Comparison) -> str:
    """The whole page. Where it would pass ``MAX_BYTES`` it is rendered again with less detail."""
    page = ""
    for limits in _LEVELS:
        template = _environment(limits).get_template("compare.html.j2")
        page = template.render(c=comparison, style=Markup(_style()), limits=limits)
        if len(page.encode()) <= MAX_BYTES:
            break
    return page


def _style() -> str:
    sheets = (("traceview.reports", "report.css"), ("traceview.reports.compare", "compare.css"))
    return "".join(
        (files(package) / "templates" / name).read_text(encoding="utf-8")
        for package, name in sheets
    )


def _environment(limits: Limits) -> Environment:
    """Autoescape on, undefined names are errors, every printed value goes through ``shown``."""

    def shown(value: object) -> object:
        if value is None:
            return fmt.MISSING
        if isinstance(value, str) and not isinstance(value, Markup):
            return clean(value, limits.text)
        return value

    environment = Environment(
        loader=PackageLoader("traceview.reports.compare"),
        bytecode_cache=Beside(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(fmt=fmt, words=words, shared=shared, names=names)
    environment.filters["inline"] = lambda text: view.inline(clean(text, limits.text))
    environment.filters["path"] = view.breakable
    environment.filters["short"] = lambda text, limit=120: one_line(str(text), limit)
    return environment
