"""What is folded away below the findings: recompiles, breaks, kernels, environment."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.diagnosis.model import AccountRow, Diagnosis, RecompileLink
from traceview.reports import links, words
from traceview.reports.environment import environment_groups
from traceview.reports.markdown.text import code, escape, table
from traceview.reports.view import Account, accounts, digits
from traceview.words import names
from traceview.words import numbers as fmt

ROWS = 20


def sections(d: Diagnosis) -> Iterable[str]:
    """Everything that is folded away, the most telling first."""
    yield details("Where the time goes", _accounting(d))
    yield _nothing(d)
    yield details("Recompiles", _recompiles(d))
    yield details("Graph breaks", _breaks(d))
    yield details("Top kernels, compiled", _kernels(d, "compiled"))
    yield details("Top kernels, eager", _kernels(d, "eager"))
    yield from around(d)


def around(d: Diagnosis) -> Iterable[str]:
    """Where it ran, and what was not checked."""
    yield details("Environment", _environment(d))
    yield details("Not checked", _not_checked(d))


def _nothing(d: Diagnosis) -> str:
    """What was looked for in the compiler's logs and was not there, in one line."""
    kinds = (("recompile", d.recompiles), ("graph break", d.graph_breaks))
    absent = [f"no {what}" for what, rows in kinds if not rows]
    if not absent or not d.reading.records:
        return ""
    return f"\n{' and '.join(absent).capitalize()} was recorded.\n"


def details(title: str, body: str) -> str:
    """A folded part; empty without a body."""
    return f"\n<details><summary>{title}</summary>\n\n{body}\n</details>\n" if body else ""


def more(total: int, what: str, shown: int = ROWS) -> str:
    """How many rows a table has no room for; empty if none."""
    return f"\n{fmt.count(total - shown)} more {what} are in the report.\n" if total > shown else ""


def _accounting(d: Diagnosis) -> str:
    """Categories of both stances, the largest change first, as in the report."""
    decimals = digits(d)
    rows = [
        (escape(words.category(row.category)), _ms(row.eager, decimals),
         _ms(row.compiled, decimals), _change(row, decimals) if len(d.accounting) > 1 else "–")
        for row in accounts(d)[:ROWS]
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
    said = "".join(f"\nRecompile limit hit: {code(chain.name)}.\n" for chain in hit[:ROWS])
    return table(heads, rows[:ROWS], 1) + more(len(rows), "recompiles") + said


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
    return table(heads, rows[:ROWS], 1) + more(len(rows), "graph breaks")


def _gb(gb_id: str | None) -> str:
    page = links.graph_break(gb_id)
    return f"[{gb_id}]({page})" if page else escape(gb_id or "none")


def _kernels(d: Diagnosis, stance: str) -> str:
    groups = [group for group in d.kernels if group.stance == stance]
    rows = [
        (code(names.kernel(g.name)), escape(words.category(g.category)),
         fmt.count(g.count), fmt.fixed(g.ms))
        for g in groups[:ROWS]
    ]  # fmt: skip
    heads = ("Kernel", "Category", "Calls per step", f"ms per step ({stance})")
    return table(heads, rows, 2) + more(len(groups), "kernels") if rows else ""


def _environment(d: Diagnosis) -> str:
    rows = [
        (code(name) if title else escape(name), escape(value), escape(title))
        for title, group in environment_groups(d.environment)
        for name, value in group[: 2 * ROWS]
    ]
    return table(("Name", "Value", "Kind"), rows[: 4 * ROWS]) if rows else ""


def _not_checked(d: Diagnosis) -> str:
    rows = [
        (escape(needs), code(command or "") or "–", escape(", ".join(rules), 600))
        for needs, command, rules in words.unchecked(d)
    ]
    return table(("Needs", "Command", "Rules"), rows[: 2 * ROWS]) if rows else ""
