"""A rule's change of one line, placed in the user's file: a diff that ``patch`` and git can apply.

Rules write ``- old`` and ``+ new`` without indentation, from the line that they know. Here the line
is looked up in the run's own copy of the file. What would leave no Python behind is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import PurePath

from msgspec.structs import replace

from traceview.derive.syntax import syntax_tree
from traceview.rules.finding import Finding, Snippet

#: Lines around a change: git wants one, and the report shows more of the source anyway.
AROUND = 1
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def placed(finding: Finding, read: Callable[[str], str | None], folder: str) -> Finding:
    """``finding`` with its change of one line as a unified diff; paths are relative to ``folder``.

    It stays as it is where the run has no copy of the file, or the line is not in it.
    """
    change, place = _change(finding.snippet), finding.location
    text = read(place.file) if change and place else None
    if change is None or place is None or text is None:
        return finding
    old, new = change
    before = _lines(text)
    index = _index(before, old, place.line)
    if index is None:
        return finding
    line = before[index]
    indent = line[: len(line) - len(line.lstrip())]
    end = "\n" if line.endswith("\n") else ""
    added = [indent + _indented(part, indent) + "\n" for part in new]
    added[-1] = added[-1][:-1] + end
    after = [*before[:index], *added, *before[index + 1 :]]
    if syntax_tree(text) and not syntax_tree("".join(after)):
        return replace(finding, snippet=None)
    return replace(
        finding, snippet=Snippet("diff", _diff(_name(place.file, folder), before, after))
    )


def _change(snippet: Snippet | None) -> tuple[str, list[str]] | None:
    """(the old line, the new ones) of ``- old``, ``+ new``, …; None for anything else."""
    if snippet is None or snippet.language != "diff":
        return None
    first, *others = snippet.text.split("\n")
    if not first.startswith("- ") or not others or not all(row.startswith("+ ") for row in others):
        return None
    return first[2:], [row[2:] for row in others]


def _lines(text: str) -> list[str]:
    """Its lines with their ends, as Python and ``patch`` count them: form feeds end none."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _index(lines: list[str], old: str, number: int) -> int | None:
    """Where ``old`` stands: at line ``number``, or else in one line of the file only."""
    if 1 <= number <= len(lines) and lines[number - 1].strip() == old:
        return number - 1
    found = [index for index, line in enumerate(lines) if line.strip() == old]
    return found[0] if len(found) == 1 else None


def _indented(line: str, indent: str) -> str:
    """``line`` with tabs in front of it where the file has tabs."""
    inner = line.lstrip()
    depth = (len(line) - len(inner)) // 4
    return "\t" * depth + inner if indent.startswith("\t") else line


def _diff(name: str, before: list[str], after: list[str]) -> str:
    return "".join(_marked(unified_diff(before, after, name, name, n=AROUND))).rstrip("\n")


def _marked(rows: Iterator[str]) -> Iterator[str]:
    for row in rows:
        yield row if row.endswith("\n") else row + _NO_NEWLINE


def _name(file: str, folder: str) -> str:
    """``file`` as seen from ``folder``, where the run was started; else its name alone."""
    path = PurePath(file)
    inside = folder and path.is_relative_to(folder)
    return (path.relative_to(folder) if inside else PurePath(path.name)).as_posix()
