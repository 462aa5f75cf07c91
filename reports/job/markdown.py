"""The story of a job as Markdown: the sentence, figures and causes openly, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.diagnosis.job.model import Job
from traceview.diagnosis.model import Diagnosis
from traceview.reports import words as common
from traceview.reports.job import words
from traceview.reports.markdown_text import ROWS, code, details, escape, more, prose, table
from traceview.words import names as known
from traceview.words import numbers as fmt

_FRAMES, _CAUSES, _LINKS = 8, 3, 5


def head(d: Diagnosis, job: Job) -> Iterable[str]:
    """What is not folded: the sentence, figures, causes, and what went wrong."""
    yield _first(d, job)
    yield from _causes(d, job)


def _first(d: Diagnosis, job: Job) -> str:
    first = prose(common.said(f"{job.headline}.", d), 400)
    said = f"**{first}** {prose(common.said(' '.join(job.remarks), d), 800)}".rstrip()
    rows = [("Target", code(common.target(d)) or fmt.MISSING)]
    if len(job.attempts) > 1:
        rows.append(("Shown", escape(words.attempt(job.attempt))))
    rows += [(escape(", ".join(filter(None, (n, s)))), value) for n, value, s in words.facts(job)]
    return f"## Post-mortem\n\n{said}\n\n" + table(("", ""), rows)


def _causes(d: Diagnosis, job: Job) -> Iterable[str]:
    rows = [
        (code(words.frame(row, d)), fmt.fixed(row.rank_seconds, 2), fmt.fixed(row.most_seconds, 2),
         escape(words.who(row.ranks)),
         "; ".join(prose(words.cause(cause), 200) for cause in row.causes[:_CAUSES]) or "–")
        for row in job.frames[:_FRAMES]
    ]  # fmt: skip
    heads = ("Function", "All ranks, s", "Most on a rank, s", "Ranks", "Causes")
    if rows:
        made = table(heads, rows) + more(len(job.frames), "functions", _FRAMES)
        yield f"\n### Slowest to compile\n\n{made}"
    troubles = list(words.troubles(job, d))
    if troubles:
        listed = (f"- **{escape(kind)}:** {prose(text, 300)}\n" for kind, text in troubles[:ROWS])
        rest = more(len(troubles), "lines")
        yield f"\n### What went wrong\n\n{''.join(listed)}{rest}"


def folded(d: Diagnosis, job: Job) -> Iterable[str]:
    """Tables, each folded away."""
    yield details("Compile seconds by rank", _ranks(job))
    yield details("Caches", _caches(job))
    yield details("Recompiles over ranks", _recompiles(job, d))
    yield details("Compiles after the start", _late(job, d))
    yield details("Graph breaks over ranks", _breaks(job, d))
    yield details("Versions and settings that differ", _configs(job))
    yield details("Compiles that others waited for", _waits(job, d))
    yield details("What was read", _files(job))


def _ranks(job: Job) -> str:
    columns, _ = words.rank_columns(job)
    rows = [(escape(row.rank), *(c.cell(row) for c in columns)) for row in job.ranks[:ROWS]]
    heads = ("Rank", *(escape(", ".join(filter(None, (c.name, c.small)))) for c in columns))
    rest = more(len(job.ranks) + job.ranks_left_out, "ranks")
    return table(heads, rows, len(columns)) + rest if rows else ""


def _caches(job: Job) -> str:
    names = words.outcomes(job)
    looked = [
        (
            escape(known.cache(row.cache)),
            *(fmt.count(row.counts.get(n, 0)) for n in names),
        )
        for row in job.caches.rows
    ]
    differing = [
        (code(row.component or "the same key"), escape(row.between), escape(row.text, 300),
         "; ".join(f"{escape(who)}: {code(value)}" for who, _, value in words.sides(row.sides)[:4]))
        for row in job.caches.differences[:ROWS]
    ]  # fmt: skip
    parts = (
        table(("Cache", *(escape(name) for name in names)), looked, len(names)) if looked else "",
        table(("Component of the key", "Between", "What it did", "Values"), differing)
        if differing
        else "",
    )
    return "\n".join(filter(None, parts))


def _recompiles(job: Job, d: Diagnosis) -> str:
    rows = [
        (code(f"{chain.name} at {words.line(chain.file, chain.line, d)}"),
         escape(words.who(chain.ranks)), code(link.source_name or link.guard),
         f"{code(link.old or '?')} → {code(link.new) if link.new else 'another value'}",
         fmt.cell(link.seconds, 2))
        for chain in job.recompiles for link in chain.links[:_LINKS]
    ]  # fmt: skip
    heads = ("Function", "Ranks", "What changed", "Values", "s")
    return table(heads, rows[:ROWS], 1) + more(len(rows), "recompiles") if rows else ""


def _late(job: Job, d: Diagnosis) -> str:
    rows = [
        (code(f"{row.name} at {words.line(row.file, row.line, d)}"), escape(words.who(row.ranks)),
         prose(row.cause or "–", 200), fmt.fixed(row.seconds, 2))
        for row in (job.late.rows if job.late else ())[:ROWS]
    ]  # fmt: skip
    return table(("Function", "Ranks", "Cause", "s"), rows, 1) if rows else ""


def _breaks(job: Job, d: Diagnosis) -> str:
    rows = [
        (code(words.line(row.file, row.line, d)), prose(row.reason, 200),
         escape(words.who(row.ranks)), fmt.count(row.times))
        for row in job.breaks[:ROWS]
    ]  # fmt: skip
    rest = more(len(job.breaks), "lines")
    return table(("Line", "Reason", "Ranks", "Times"), rows, 1) + rest if rows else ""


def _configs(job: Job) -> str:
    rows = [
        (code(row.name), escape(row.section.replace("_", " ")), escape(who), code(value, 300))
        for row in job.configs for who, _, value in words.sides(row.sides)
    ]  # fmt: skip
    heads = ("Name", "Section", "Ranks", "Value")
    return table(heads, rows[: 2 * ROWS]) + more(len(rows), "values", 2 * ROWS) if rows else ""


def _waits(job: Job, d: Diagnosis) -> str:
    rows = [
        (code(f"{row.name} at {words.line(row.file, row.line, d)}"), escape(row.rank),
         escape(words.who(row.ranks)), escape(row.basis), fmt.fixed(row.seconds, 2))
        for row in job.waits[:ROWS]
    ]  # fmt: skip
    return table(("Compile", "On", "Who waited", "Known", "s"), rows, 1) if rows else ""


def _files(job: Job) -> str:
    rows = [
        (code(row.name), escape(known.word(known.FILES, row.kind)), escape(row.error or ""),
         fmt.count(row.records) if row.records is not None else "–", fmt.count(row.damaged))
        for row in job.files[:ROWS]
    ]  # fmt: skip
    heads = ("File", "Kind", "Not read because", "Records", "Damage")
    return table(heads, rows, 2) + more(len(job.files), "files") if rows else ""
