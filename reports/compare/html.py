"""A comparison as one self-contained page: no network, no script, light and dark."""

from __future__ import annotations

import msgspec
from markupsafe import Markup

from traceview.compare.model import Comparison
from traceview.reports import words as shared
from traceview.reports.compare import words
from traceview.reports.html import MAX_BYTES, asset, environment


class Limits(msgspec.Struct, frozen=True):
    """Characters of a text and rows of a table that a page has room for."""

    text: int
    rows: int


# Tried in turn until the page fits: --json has everything.
_LEVELS = (Limits(2000, 400), Limits(600, 120), Limits(160, 25))
_PACKAGE = "traceview.reports.compare"


def render(comparison: Comparison) -> str:
    """The whole page. Where it would pass ``MAX_BYTES`` it is rendered again with less detail."""
    style = Markup(asset("report.css") + asset("compare.css", _PACKAGE))
    page = ""
    for limits in _LEVELS:
        templates = environment(_PACKAGE, limits.text, {"words": words, "shared": shared})
        template = templates.get_template("compare.html.j2")
        page = template.render(c=comparison, style=style, limits=limits)
        if len(page.encode()) <= MAX_BYTES:
            break
    return page
