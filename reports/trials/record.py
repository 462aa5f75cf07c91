"""The results record as files: a page that needs no network and no script, Markdown, CSV."""

from __future__ import annotations

import csv as csv_module
import io

from markupsafe import Markup

from traceview.reports.html import asset, environment
from traceview.reports.markdown import escape, fenced, table
from traceview.reports.trials import words
from traceview.trials.model import Results

_TEXT = 20_000
_PACKAGE = "traceview.reports.trials"
_COLUMNS = (
    *("name", "rules", "settings", "verdict", "why", "ratio", "low", "high", "pairs", "apart"),
    *("clock", "baseline", "baseline_ms", "trial_ms", "predicted_ms", "measured_ms"),
    *("compile_seconds", "compiles", "graphs", "graph_breaks", "peak_bytes"),
    *("baseline_peak_bytes", "outputs_agree", "price", "target", "device_name", "torch_version"),
)
#: A spreadsheet takes what begins so for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def html(results: Results) -> str:
    """The whole page, light and dark."""
    style = Markup(asset("report.css") + asset("trials.css", _PACKAGE))
    templates = environment(_PACKAGE, _TEXT, {"words": words})
    return templates.get_template("trials.html.j2").render(r=results, style=style)


def markdown(results: Results) -> str:
    """One table, with what is recommended above it and what was not tried below."""
    parts = [f"**{escape(words.headline(results), 400)}**"]
    best = results.recommended
    if best is not None and best.code:
        parts.append(fenced("\n".join(best.code), "python").rstrip())
    rows = [
        (
            str(number),
            " ".join(words.VERDICTS[trial.verdict]),
            escape(trial.name),
            words.gain(trial),
            escape(words.timed(trial)),
            escape(words.saved(trial)),
            words.outputs(trial),
            escape(trial.why or ""),
        )
        for number, trial in enumerate(results.trials, 1)
    ]
    heads = ("#", "verdict", "remedy", "gain", "step", "saved", "outputs", "why")
    if rows:
        parts.append(table(heads, rows))
    for why, names in words.untried(results.not_tried):
        parts.append(f"Not tried: {escape(', '.join(names), 400)} ({escape(why, 400)})")
    parts += [escape(note, 400) for note in results.notes]
    return "\n\n".join(parts) + "\n"


def csv(results: Results) -> str:
    """A row a trial (RFC 4180); empty is not recorded, and no cell is taken for a formula."""
    text = io.StringIO()
    rows = csv_module.writer(text)
    rows.writerow(_COLUMNS)
    shared = {
        "baseline": results.baseline,
        "target": results.target,
        "device_name": results.environment.get("device_name"),
        "torch_version": results.environment.get("torch_version"),
    }
    for trial in results.trials:
        low, high = trial.interval or (None, None)
        lists = {name: "; ".join(getattr(trial, name)) for name in ("rules", "settings", "price")}
        known = shared | lists | {"low": low, "high": high}
        cells = [known[name] if name in known else getattr(trial, name) for name in _COLUMNS]
        rows.writerow(
            f"'{each}" if isinstance(each, str) and each.startswith(_FORMULAS) else each
            for each in cells
        )
    return text.getvalue()
