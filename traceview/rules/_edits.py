"""Small changes of the user's own line, as diffs: shown, never applied.

There is a diff only if everything that changes is on that one line.
"""

from __future__ import annotations

import re

from traceview.rules.kit import Location, Row, Snippet, Tables, rows

_VALUE = r"""("[^"]*"|'[^']*'|[\w.]+)"""
_CALL = re.compile(r"\btorch\.compile\(")
_LOST = re.compile(r"(?:(\w+) = )?torch\.compile\(([A-Za-z_][\w.]*)(?:,\s*([^()]*))?\)")
_DECORATOR = re.compile(r"@torch\.compile$")


def source_line(tables: Tables, place: Location | None) -> str | None:
    """The user's text at ``place``, a torch.compile call; None where it was not kept."""
    if place is None:
        return None
    found = rows(tables, "source_lines", file=place.file, line=place.line)
    return found[0]["text"] if found else None


def without(line: str | None, argument: str) -> Snippet | None:
    """``line`` without a keyword argument of its call."""
    rest = _rest(line or "", argument)
    return diff(line, rest) if line is not None and rest is not None else None


def added(line: str | None, argument: str, *, dropped: str | None = None) -> Snippet | None:
    """``line`` with one more argument in its only call of torch.compile.

    ``dropped``: a keyword argument that goes, where it stands there.
    """
    text = (line or "").strip()
    if _DECORATOR.fullmatch(text):
        return diff(text, f"{text}({argument})")
    calls = list(_CALL.finditer(text))
    if len(calls) != 1:
        return None
    inside, depth = "", 1
    for character in text[calls[0].end() :]:
        depth += (character in "([{") - (character in ")]}")
        if not depth or character in "\"'#":
            break
        inside += character
    if depth:
        return None  # the bracket does not close here, or a string is around
    end = calls[0].end() + len(inside)
    comma = "" if not inside.strip() else " " if inside.rstrip().endswith(",") else ", "
    new = text[:end].rstrip() + comma + argument + text[end:]
    return diff(text, (_rest(new, dropped) if dropped else None) or new)


def kept(line: str | None, *, in_place: bool) -> Snippet | None:
    """``line``, a torch.compile call whose result is lost, with a use for the result.

    ``in_place``: what is compiled is a module, which can compile itself: also where the result has
    the name of a parameter, which its caller does not see.
    """
    found = _LOST.fullmatch((line or "").strip())
    if found is None:
        return None
    bound, name, more = found.groups(default="")
    if bound and not (in_place and bound == name):
        return None
    return diff(found[0], f"{name}.compile({more})" if in_place else f"{name} = {found[0]}")


def beside(row: Row) -> Snippet:
    """The line ``text`` of a row, with ``added`` as a line before or after it."""
    text = row["text"].strip()
    both = (row["added"], text) if row["before"] else (text, row["added"])
    return Snippet("diff", "\n+ ".join((f"- {text}", *both)))


def diff(old: str, new: str) -> Snippet:
    """One line for another."""
    return Snippet("diff", f"- {old.strip()}\n+ {new.strip()}")


def _rest(line: str, argument: str) -> str | None:
    """``line`` without a keyword argument; None where it is not there once."""
    named = rf"\b{re.escape(argument)}\s*=\s*{_VALUE}"
    for pattern in map(re.compile, (rf",\s*{named}(?=\s*[,)])", rf"{named}\s*(?:,\s*|(?=\)))")):
        if len(pattern.findall(line)) == 1:
            return pattern.sub("", line)
    return None
