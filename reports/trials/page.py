"""trials.html: the results record as one page that needs no network and no script."""

from __future__ import annotations

from markupsafe import Markup

from traceview.reports.html import asset, environment
from traceview.reports.trials import words
from traceview.trials.model import Results

_TEXT = 20_000
_PACKAGE = "traceview.reports.trials"


def html(results: Results) -> str:
    """The whole page, light and dark."""
    style = Markup(asset("report.css") + asset("trials.css", _PACKAGE))
    templates = environment(_PACKAGE, _TEXT, {"words": words})
    return templates.get_template("trials.html.j2").render(r=results, style=style)
