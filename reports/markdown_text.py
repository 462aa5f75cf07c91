"""What Markdown reports are written with: nothing in a log can end or escape from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traceview.words.text import clean, one_line

_SPECIAL = re.compile(r"([\\`*_\[\]#|~!])")
CELL, _PARAGRAPH, _CODE = 160, 1200, 3000
MAX_BYTES = 60_000  # GitHub refuses more than 65,536 characters
ROWS = 20


def within_limit(parts: Iterable[str], cut: str) -> str:
    """As many ``parts`` as fit ``MAX_BYTES``; where some do not, ``cut`` ends the page."""
    page, room = "", MAX_BYTES - len(cut.encode())
    for part in parts:
        if len((page + part).encode()) > room:
            return (page + cut).rstrip("\n")
        page += part
    return page.rstrip("\n")


def details(title: str, body: str) -> str:
    """A folded part; empty without a body."""
    return f"\n<details><summary>{title}</summary>\n\n{body}\n</details>\n" if body else ""


def escape(text: str, limit: int = CELL) -> str:
    """Text on one line with nothing in it that Markdown or HTML would read as its own."""
    bare = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    bare = _SPECIAL.sub(r"\\\1", bare)
    # A zero-width space keeps @name from mentioning somebody and a bare address from being linked.
    return bare.replace("@", "@\u200b").replace("://", ":\u200b//")


def code(text: str, limit: int = CELL) -> str:
    """Inline code; ``|`` would end a table cell even there, so it is written as ``¦``."""
    bare = one_line(text, limit).replace("|", "¦")
    fence = "`" * (_longest_run(bare) + 1)
    pad = " " if bare.startswith("`") or bare.endswith("`") else ""
    return f"{fence}{pad}{bare}{pad}{fence}" if bare else ""


def prose(text: str, limit: int = _PARAGRAPH) -> str:
    """Text whose `inline code` stays code and whose everything else is plain."""
    shown = []
    for index, piece in enumerate(re.split(r"`([^`\n]+)`", one_line(text, limit))):
        if index % 2:
            shown.append(code(piece, limit))
        else:  # one space at either end stays: the piece stands between two others
            bare = escape(piece, limit)
            shown += (" " * piece.startswith(" "), bare, " " * (piece.endswith(" ") and bare != ""))
    return "".join(shown)


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
