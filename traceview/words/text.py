"""Text from logs made safe to show: no control characters, bounded length, known width.

Escaping for HTML, Markdown or a terminal comes after this and is each renderer's own business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wcwidth import wcwidth

# Whole escape sequences first (CSI, OSC, two-byte), so that "[31m" does not stay behind.
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[@-Z\\^_]|\x9b[0-?]*[ -/]*[@-~]"
)
# C0 (less tab and newline), DEL, C1, soft hyphens, bidirectional controls, zero-width marks, lone
# surrogates, tags.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
# Emoji sequences and Indic scripts need the joiners; they reorder nothing.
_HARMLESS = frozenset("\u200c\u200d")
_NOT_WORTH_CUTTING = 25  # characters: as many as are put in their place


def clean(text: str, limit: int | None = None) -> str:
    """``text`` without escape sequences; other invisible characters are shown as ``<U+202E>``.

    With ``limit``, at most that many characters are kept and the sentence says how many are not;
    where saying so would take as much room as they do, they are kept.
    """
    left_out = len(text) - limit if limit is not None else 0
    if left_out > _NOT_WORTH_CUTTING:
        return clean(text[:limit]) + f"… ({left_out:,} more characters)"
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    return _INVISIBLE.sub(
        lambda found: found[0] if found[0] in _HARMLESS else f"<U+{ord(found[0]):04X}>", text
    )


def one_line(text: str, limit: int | None = None) -> str:
    """``clean`` with every run of white space made one space."""
    return clean(" ".join(text.split()), limit)


def csv_cell(value: object) -> object:
    """A cell that acts in no terminal and in no spreadsheet; what is no text stays as it is."""
    text = clean(value) if isinstance(value, str) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text


def sentences(text: str, most: int) -> str:
    """``one_line`` that ends after a sentence, if one ends in the second half of what is kept."""
    text = " ".join(text.split())
    end = text.rfind(". ", most // 2, most)
    if end < 0 or len(text) - most <= _NOT_WORTH_CUTTING:
        return clean(text, most)
    return clean(text[: end + 1]) + " …"


def shorten(text: str | None, most: int = 120) -> str:
    """The first line of ``text``, cut to ``most`` characters."""
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= most else f"{line[: most - 1]}…"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def display_width(text: str) -> int:
    """Terminal columns that ``text`` takes: wide characters two, combining ones none."""
    return sum(max(0, wcwidth(character)) for character in text)


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Lines of at most ``width`` columns; a word that is longer is cut where the line ends."""
    hanging = indent if hanging is None else hanging
    lines: list[str] = []
    current, empty = indent, True
    for word in text.split():
        while word:
            gap = "" if empty else " "
            if display_width(current + gap + word) <= width:
                current, empty, word = current + gap + word, False, ""
            elif not empty:
                lines.append(current)
                current, empty = hanging, True
            else:
                head = cut(word, max(1, width - display_width(current)))
                lines.append(current + head)
                current, word = hanging, word[len(head) :]
    return lines if empty and lines else [*lines, current]


def cut(text: str, width: int) -> str:
    """The longest head of ``text`` that fits ``width`` columns, at least one character."""
    used = 0
    for index, character in enumerate(text):
        used += max(0, wcwidth(character))
        if used > width:
            return text[: max(1, index)]
    return text
