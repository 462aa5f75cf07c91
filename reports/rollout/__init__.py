"""The record of a rollout check: on a terminal, as a page and as Markdown.

The page needs no network and no script.
"""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from traceview.reports.html import asset, environment
from traceview.reports.markdown import escape, table
from traceview.reports.rollout import words
from traceview.reports.screen import BOLD, DIM, GREEN, RED, YELLOW, Line, drawn
from traceview.rollout.model import Rollout
from traceview.words import numbers as fmt

_TEXT = 20_000
_PACKAGE = "traceview.reports.rollout"
_TONES = {True: GREEN, False: RED, None: YELLOW}


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


def terminal(record: Rollout, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used)."""
    return drawn(_lines(record), width, color, most=600)


def _lines(record: Rollout) -> Iterator[Line]:
    yield record.verdict, BOLD, "", "  "
    yield "", "", "", ""
    for check in record.checks:
        text = f"{words.mark(check)}: {check.detail}"
        yield text, _TONES[check.passed], "  ", "    "
        for link in check.findings:
            yield f"{link.code} {link.rule}: {link.title}", DIM, "    ", "      "
    if record.served:
        yield "", "", "", ""
        yield "Calls after the warm-up (p50, p95, p99)", BOLD, "", ""
    for row in record.served:
        clock = "" if row.clock == "host" else f", {row.clock} clock"
        where = f"{row.name}, {words.PROCESSES[row.process]}: "
        yield where + ", ".join(words.percentiles(row)) + clock, "", "  ", "    "
        warm = f"first call {fmt.milliseconds(row.first_ms)}; warm-up "
        warm += f"({fmt.plural(row.warmup_calls, 'call')}) {fmt.seconds(row.warmup_seconds)}"
        if row.process != "eager":
            warm += f"; recompiles per 1,000 calls: {words.recompiles(row)}"
        yield warm, DIM, "    ", "      "
    for process in record.processes:
        yield f"{words.PROCESSES[process.name]}: {words.process(process)}", DIM, "  ", "    "
    for traffic in record.traffic:
        yield "", "", "", ""
        yield f"Shapes of {words.served_of(record, traffic)}", BOLD, "", "  "
        for dimension in traffic.dimensions:
            yield words.varies(dimension), "", "  ", "    "
        yield words.graphs(record, traffic), "", "  ", "    "
        for rung in traffic.rungs:
            graphs, padding, buckets = words.rung(rung)
            said = f"{graphs} with buckets {buckets}: {padding} of the elements are padding"
            yield said, "", "    ", "      "
        if traffic.file is not None:
            yield words.covered(traffic), "", "  ", "    "
        if traffic.left_out:
            rest = fmt.plural(traffic.left_out, "call")
            yield f"{rest} with other tensors: no bucket is for them", "", "  ", "    "
    for note in record.notes:
        yield note, DIM, "", "  "
