"""The record as files: a page that needs no network and no script, and Markdown."""

from __future__ import annotations

from markupsafe import Markup

from traceview.reports.html import asset, environment
from traceview.reports.markdown import escape, table
from traceview.reports.rollout import words
from traceview.rollout.model import Rollout
from traceview.words import numbers as fmt

_TEXT = 20_000
_PACKAGE = "traceview.reports.rollout"


def html(record: Rollout) -> str:
    """The whole page, light and dark."""
    sheets = asset("report.css"), asset("pictures.css"), asset("rollout.css", _PACKAGE)
    templates = environment(_PACKAGE, _TEXT, {"words": words})
    page = templates.get_template("rollout.html.j2")
    return page.render(r=record, style=Markup("".join(sheets)))


def markdown(record: Rollout) -> str:
    """The checklist, latencies, and the buckets."""
    parts = [f"**{escape(record.verdict, 400)}**"]
    rows = [
        (
            words.mark(check),
            escape(check.detail, 400),
            escape(", ".join(link.code for link in check.findings)),
        )
        for check in record.checks
    ]
    parts.append(table(("check", "facts", "findings"), rows))
    if record.served:
        heads = (
            "callable",
            "process",
            "calls",
            "first call",
            "p50",
            "p95",
            "p99",
            "recompiles per 1,000",
        )
        parts.append(
            table(
                heads,
                [
                    (
                        escape(row.name),
                        words.PROCESSES[row.process],
                        f"{row.calls:,}",
                        fmt.milliseconds(row.first_ms),
                        *words.percentiles(row),
                        words.recompiles(row),
                    )
                    for row in record.served
                ],
            )
        )
    parts += [
        f"- {words.PROCESSES[each.name]}: {escape(words.process(each))}"
        for each in record.processes
    ]
    for traffic in record.traffic:
        parts.append(f"**Shapes of {escape(words.served_of(record, traffic))}**")
        parts += [f"- {escape(words.varies(each))}" for each in traffic.dimensions]
        parts.append(f"{escape(words.graphs(record, traffic), 400)}.")
        if traffic.file is not None:
            parts.append(f"{escape(words.covered(traffic), 600)}.")
        if traffic.rungs:
            rungs = [tuple(map(escape, words.rung(rung))) for rung in traffic.rungs]
            parts.append(table(("graphs", "padding", "buckets"), rungs))
    parts += [escape(note, 400) for note in record.notes]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
