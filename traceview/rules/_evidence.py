"""Evidence from rows, and numbers as a person reads them."""

from __future__ import annotations

from traceview.rules._rows import Row
from traceview.rules.finding import Evidence

#: Enough to prove a finding; the tables hold the rest.
MOST_EVIDENCE = 5


def from_row(text: str, table: str, row: Row) -> Evidence:
    """``text`` with the raw line that the row was read from, where it has one."""
    return Evidence(text, table, row.get("raw_file"), row.get("raw_line"))


def milliseconds(ms: float) -> str:
    """``42 µs`` or ``1.25 ms``: three significant digits at any size."""
    if 0 < ms < 0.1:
        return f"{1000 * ms:.3g} µs"
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms:,.0f} ms"


def seconds(value: float) -> str:
    """``1.8 s`` or ``0.042 s``."""
    return f"{value:.1f} s" if value >= 0.95 else f"{value:.2g} s"


def percent(share: float) -> str:
    """A share of 0 to 1 as whole percent."""
    return f"{100 * share:.0f} %"


def binary_bytes(size: int) -> str:
    """Bytes as ``512 MiB`` or ``1.56 GiB``."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def times(count: int) -> str:
    """``once``, ``twice``, ``7 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def plural(count: int, noun: str) -> str:
    """``1 graph``, ``2 graphs``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(text: str | None, most: int = 120) -> str:
    """The first line, cut to ``most`` characters."""
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= most else f"{line[: most - 1]}…"
