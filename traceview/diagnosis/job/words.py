"""Ranks, functions and times of a job as a person reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePath

from traceview.derive.job.attempts import in_order, ranges
from traceview.diagnosis.job.model import Ranks

#: Ranges written out; the rest is counted.
_SHOWN = 6


def members_of(text: str | None) -> list[str]:
    """The members that a table's ``0-16,18-63`` stands for."""
    found: list[str] = []
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if dash and first.isdigit() and last.isdigit():
            found += map(str, range(int(first), int(last) + 1))
        elif part:
            found.append(part)
    return found


def ranks(members: Collection[str], everyone: int | None = None) -> Ranks:
    """How many, and in words; ``everyone``: how many there are in all."""
    count = len(set(members))
    if everyone is not None and count == everyone > 2:
        return Ranks(count, f"all {count:,} ranks")
    return Ranks(count, _text(members))


def member_name(member: str) -> str:
    """``rank 17``; ``process 4711`` where its rank is not known."""
    return f"rank {member}" if member.isdigit() else f"process {member.removeprefix('p')}"


def _text(members: Iterable[str]) -> str:
    found = in_order(members)
    parts = [part for part in ranges(found).split(",") if part]
    words = [part.replace("-", "–").removeprefix("p") for part in parts[:_SHOWN]]
    shown = members_of(",".join(parts[:_SHOWN]))
    more = len(found) - len(shown)
    if more:
        words.append(f"{more:,} more")
    noun = "rank" if all(member.isdigit() for member in found) else "process"
    plural = noun if len(found) == 1 else "ranks" if noun == "rank" else "processes"
    if not words:
        return "no rank"
    joined = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"{plural} {joined}"


def place(file: str | None, line: int | None) -> str | None:
    """``model.py:26``."""
    return f"{PurePath(file).name}:{line}" if file and line is not None else None


def seconds(value: float) -> str:
    """``412 s``, ``30.6 s``, ``1.8 s`` or ``0.042 s``."""
    if value >= 99.95:
        return f"{value:,.0f} s"
    return f"{value:.1f} s" if value >= 0.95 else f"{value:.2g} s"


def cut(text: str | None, most: int = 400) -> str | None:
    """``text`` without what a report has no room for."""
    return text if text is None or len(text) <= most else f"{text[: most - 1]}…"
