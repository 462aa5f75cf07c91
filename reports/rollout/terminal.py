"""The record on a terminal: the checklist, latency, shapes and buckets."""

from __future__ import annotations

from collections.abc import Iterator

from traceview.reports.rollout import words
from traceview.rollout.model import Rollout, Traffic
from traceview.words import numbers as fmt
from traceview.words.text import one_line, wrap

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_TONES = {True: "\x1b[32m", False: "\x1b[31m", None: "\x1b[33m"}
_NARROWEST, _WIDEST = 20, 100

Line = tuple[str, str, str, str]


def render(record: Rollout, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used)."""
    columns = max(_NARROWEST, min(width, _WIDEST))
    lines: list[str] = []
    for text, codes, indent, hanging in _lines(record):
        made = wrap(one_line(text, 600), columns, indent, hanging) if text else [""]
        lines += [f"{codes}{line}{_RESET}" if color and codes else line for line in made]
    return "\n".join(lines)


def _lines(record: Rollout) -> Iterator[Line]:
    yield record.verdict, _BOLD, "", "  "
    yield "", "", "", ""
    for check in record.checks:
        text = f"{words.mark(check)}: {check.detail}"
        yield text, _TONES[check.passed], "  ", "    "
        for link in check.findings:
            yield f"{link.code} {link.rule}: {link.title}", _DIM, "    ", "      "
    if record.served:
        yield "", "", "", ""
        yield "Calls after the warm-up (p50, p95, p99)", _BOLD, "", ""
    for row in record.served:
        clock = "" if row.clock == "host" else f", {row.clock} clock"
        where = f"{row.name}, {words.PROCESSES[row.process]}: "
        yield where + ", ".join(words.percentiles(row)) + clock, "", "  ", "    "
        warm = f"first call {fmt.milliseconds(row.first_ms)}; warm-up "
        warm += f"({fmt.plural(row.warmup_calls, 'call')}) {fmt.seconds(row.warmup_seconds)}"
        if row.process != "eager":
            warm += f"; recompiles per 1,000 calls: {words.recompiles(row)}"
        yield warm, _DIM, "    ", "      "
    for process in record.processes:
        yield f"{words.PROCESSES[process.name]}: {words.process(process)}", _DIM, "  ", "    "
    for traffic in record.traffic:
        yield from _traffic(record, traffic)
    for note in record.notes:
        yield note, _DIM, "", "  "


def _traffic(record: Rollout, traffic: Traffic) -> Iterator[Line]:
    yield "", "", "", ""
    yield f"Shapes of {words.served_of(record, traffic)}", _BOLD, "", "  "
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
