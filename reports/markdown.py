"""The diagnosis as GitHub Markdown that fits a ticket: under ``MAX_BYTES``, safe to paste.

Nothing in a log can end a table cell, a fence or a ``<details>``, mention a person or load an
image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traceview.diagnosis.model import AccountRow, Diagnosis, RecompileLink
from traceview.reports import format as fmt
from traceview.reports import links, names, words
from traceview.reports.text import clean, one_line
from traceview.reports.view import Account, accounts, digits, environment_groups
from traceview.rules.finding import Finding

MAX_BYTES = 60_000  # GitHub refuses more than 65,536 characters
_SPECIAL = re.compile(r"([\\`*_\[\]#|~!])")
_CUT = "\n\n_The rest is left out to fit an issue tracker; `report.html` has all of it._\n"
_CELL, _PARAGRAPH, _CODE, _ROWS = 160, 1200, 3000, 20


def render(diagnosis: Diagnosis) -> str:
    """Verdict, facts, findings, then what is folded; beyond the limit whole parts are left out."""
    parts = [_head(diagnosis), *_findings(diagnosis), *_folded(diagnosis), _foot(diagnosis)]
    page, room = "", MAX_BYTES - len(_CUT.encode())
    for part in parts:
        if len((page + part).encode()) > room:
            return (page + _CUT).rstrip("\n")
        page += part
    return page.rstrip("\n")


def escape(text: str, limit: int = _CELL) -> str:
    """Text on one line with nothing in it that Markdown or HTML would read as its own."""
    bare = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    bare = _SPECIAL.sub(r"\\\1", bare)
    # A zero-width space keeps @name from mentioning somebody and a bare address from being linked.
    return bare.replace("@", "@\u200b").replace("://", ":\u200b//")


def code(text: str, limit: int = _CELL) -> str:
    """Inline code; ``|`` would end a table cell even there, so it is written as ``¦``."""
    bare = one_line(text, limit).replace("|", "¦")
    fence = "`" * (_longest_run(bare) + 1)
    pad = " " if bare.startswith("`") or bare.endswith("`") else ""
    return f"{fence}{pad}{bare}{pad}{fence}" if bare else ""


def prose(text: str, limit: int = _PARAGRAPH) -> str:
    """Text whose `inline code` stays code and whose everything else is plain."""
    pieces = re.split(r"`([^`\n]+)`", one_line(text, limit))
    return "".join(code(p, limit) if i % 2 else _kept(p, limit) for i, p in enumerate(pieces))


def _kept(text: str, limit: int) -> str:
    """``escape`` that keeps one space at either end: the piece stands between two others."""
    start, end = (" " if text[:1] == " " else ""), (" " if text[-1:] == " " else "")
    return start + escape(text, limit) + end if text.strip() else text[:1]


def fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks in it."""
    bare = clean(text, _CODE).rstrip("\n")
    fence = "`" * max(3, _longest_run(bare) + 1)
    return f"{fence}{language}\n{bare}\n{fence}\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """A table of escaped cells; the last ``numbers`` columns are set to the right."""
    marks = ["---"] * (len(heads) - numbers) + ["---:"] * numbers
    lines = [heads, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _head(d: Diagnosis) -> str:
    verdict = d.verdict
    mark, word = words.outcome(verdict.outcome)
    times = (("Eager", verdict.eager_ms), ("Compiled", verdict.compiled_ms))
    first, rest = words.first_sentence(words.said(verdict.sentence, d))
    lines = [f"## {mark} {word}\n\n{f'**{prose(first, 400)}** {prose(rest, 400)}'.rstrip()}\n"]
    ended = words.ended(d)
    if ended:
        lines.append(f"How it ended: {escape(ended, 300)}\n")
    rows = [
        ("Target", code(words.target(d)) or fmt.MISSING),
        *((f"{name} per step", fmt.step(ms)) for name, ms in times if ms is not None),
        *([("Speedup (95 % interval)", _speedup(d))] if verdict.speedup is not None else []),
        *((", ".join(filter(None, (name, small))), value) for name, value, small in words.facts(d)),
    ]
    basis = escape(words.blocks(d), 300)
    return "\n".join(lines) + "\n" + table(("", ""), rows) + f"\n{basis[:1].upper()}{basis[1:]}.\n"


def _speedup(d: Diagnosis) -> str:
    ends = d.verdict.speedup_interval
    interval = f" ({fmt.ratio_interval(ends)})" if ends else ""
    return fmt.ratio(d.verdict.speedup) + interval


def _findings(d: Diagnosis) -> Iterable[str]:
    yield "\n### Findings\n"
    if not d.findings:
        yield f"\n{words.no_findings(d)}\n"
    for finding in d.findings[:_ROWS]:
        yield _finding(finding, d)
    yield _more(len(d.findings), "findings")


def _finding(f: Finding, d: Diagnosis) -> str:
    where = words.place(f.location, d)
    facts = (f.severity, words.cost(f.cost), f.confidence, code(where) if where else None)
    known = " · ".join(fact for fact in facts if fact)
    evidence = "".join(f"- {prose(row.text, 300)} ({code(row.table)})\n" for row in f.evidence[:5])
    snippet = "\n" + fenced(f.snippet.text, f.snippet.language) if f.snippet else ""
    return (
        f"\n**{escape(f.code)} {prose(f.title, 300)}**\n\n"
        f"{known}\n\n"
        f"{prose(f.explanation)}\n\n→ {prose(f.what_to_do)}\n{snippet}\n{evidence}"
    )


def _folded(d: Diagnosis) -> Iterable[str]:
    """Everything that is folded away, the most telling first."""
    yield _details("Where the time goes", _accounting(d))
    yield _nothing(d)
    yield _details("Recompiles", _recompiles(d))
    yield _details("Graph breaks", _breaks(d))
    yield _details("Top kernels, compiled", _kernels(d, "compiled"))
    yield _details("Top kernels, eager", _kernels(d, "eager"))
    yield _details("Environment", _environment(d))
    yield _details("Not checked", _not_checked(d))


def _nothing(d: Diagnosis) -> str:
    """What was looked for in the compiler's logs and was not there, in one line."""
    kinds = (("recompile", d.recompiles), ("graph break", d.graph_breaks))
    absent = [f"no {what}" for what, rows in kinds if not rows]
    if not absent or not d.reading.records:
        return ""
    return f"\n{' and '.join(absent).capitalize()} was recorded.\n"


def _details(title: str, body: str) -> str:
    return f"\n<details><summary>{title}</summary>\n\n{body}\n</details>\n" if body else ""


def _more(total: int, what: str) -> str:
    return f"\n{fmt.count(total - _ROWS)} more {what} are in the report.\n" if total > _ROWS else ""


def _accounting(d: Diagnosis) -> str:
    """Categories of both stances, the largest change first, as in the report."""
    decimals = digits(d)
    rows = [
        (escape(words.category(row.category)), _ms(row.eager, decimals),
         _ms(row.compiled, decimals), _change(row, decimals) if len(d.accounting) > 1 else "–")
        for row in accounts(d)[:_ROWS]
    ]  # fmt: skip
    heads = ("Category", "Eager, ms per step", "Compiled, ms per step", "Difference")
    return table(heads, rows, 3) if rows else ""


def _ms(row: AccountRow | None, decimals: int) -> str:
    return fmt.fixed(row.ms, decimals) if row else "–"


def _change(row: Account, decimals: int) -> str:
    eager, compiled = (side.ms if side else 0.0 for side in (row.eager, row.compiled))
    return fmt.difference(eager, compiled, decimals)


def _recompiles(d: Diagnosis) -> str:
    rows = [
        (code(chain.name), code(link.compile_id), code(link.guard),
         _old_new(link), fmt.seconds(link.seconds) if link.seconds is not None else "–")
        for chain in d.recompiles for link in chain.links
    ]  # fmt: skip
    if not rows:
        return ""
    heads = ("Function", "Compile id", "Failed guard", "Old → new", "Time")
    hit = [chain for chain in d.recompiles if chain.limit_hit]
    said = "".join(f"\nRecompile limit hit: {code(chain.name)}.\n" for chain in hit[:_ROWS])
    return table(heads, rows[:_ROWS], 1) + _more(len(rows), "recompiles") + said


def _old_new(link: RecompileLink) -> str:
    if link.old is None and link.new is None:
        return "–"
    return f"{code(link.old or '?')} → {code(link.new) if link.new else 'another value'}"


def _breaks(d: Diagnosis) -> str:
    rows = [
        (code(words.line(b.file, b.line, d)), _gb(b.gb_id),
         escape(b.reason), fmt.count(b.times))
        for b in d.graph_breaks
    ]  # fmt: skip
    if not rows:
        return ""
    heads = ("Place", "torch's id", "Reason", "Times")
    return table(heads, rows[:_ROWS], 1) + _more(len(rows), "graph breaks")


def _gb(gb_id: str | None) -> str:
    page = links.graph_break(gb_id)
    return f"[{gb_id}]({page})" if page else escape(gb_id or "none")


def _kernels(d: Diagnosis, stance: str) -> str:
    groups = [group for group in d.kernels if group.stance == stance]
    rows = [
        (code(names.kernel(g.name)), escape(words.category(g.category)),
         fmt.count(g.count), fmt.fixed(g.ms))
        for g in groups[:_ROWS]
    ]  # fmt: skip
    heads = ("Kernel", "Category", "Calls per step", f"ms per step ({stance})")
    return table(heads, rows, 2) + _more(len(groups), "kernels") if rows else ""


def _environment(d: Diagnosis) -> str:
    rows = [
        (code(name) if title else escape(name), escape(value), escape(title))
        for title, group in environment_groups(d.environment)
        for name, value in group[: 2 * _ROWS]
    ]
    return table(("Name", "Value", "Kind"), rows[: 4 * _ROWS]) if rows else ""


def _not_checked(d: Diagnosis) -> str:
    rows = [
        (escape(needs), code(command or "") or "–", escape(", ".join(rules), 600))
        for needs, command, rules in words.unchecked(d)
    ]
    return table(("Needs", "Command", "Rules"), rows[: 2 * _ROWS]) if rows else ""


def _foot(d: Diagnosis) -> str:
    return f"\n_traceview {escape(d.traceview or 'version not recorded')}_\n"
