"""How a record is drawn on a terminal: its lines, their tones, and the width that they get."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.words.text import clean, one_line, wrap

BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
RED, GREEN, YELLOW, BLUE = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m"
_NARROWEST, _WIDEST = 20, 100
#: In place of a hanging indent: what is to be pasted keeps its spaces and its length.
PASTE = "paste"

#: Text, escape codes, indent, and the indent of what does not fit.
Line = tuple[str, str, str, str]


def line(text: str, codes: str = "", indent: str = "", hanging: str = "") -> Line:
    """A line; without a hanging indent, all of it is indented the same."""
    return text, codes, indent, hanging or indent


def columns(width: int) -> int:
    """What is used of a terminal's ``width``: 20 to 100 columns."""
    return max(_NARROWEST, min(width, _WIDEST))


def drawn(lines: Iterable[Line], width: int, color: bool, most: int = 500) -> str:
    """About ``most`` characters of each line, wrapped; escape codes only if ``color``."""
    made: list[str] = []
    for text, codes, indent, hanging in lines:
        pieces = (
            [indent + clean(text)]
            if hanging == PASTE
            else wrap(one_line(text, most), columns(width), indent, hanging)
        )
        made += [f"{codes}{piece}{RESET}" if color and codes else piece for piece in pieces]
    return "\n".join(made)
