"""Comments in the user's source that silence findings: ``# traceview: ignore[gb-item]``.

A comment counts for the whole statement that it ends or stands in, since a log may name any of a
statement's lines.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

import msgspec

from traceview.rules.choice import ALL, did_you_mean, matching
from traceview.rules.finding import Finding
from traceview.rules.registry import Rule

ReadSource = Callable[[str], str | None]

_COMMENT = re.compile(r"#\s*traceview:\s*ignore(?![\w-])\s*(?:\[([^\]\n]*)\])?")
_LINE_ENDS = (tokenize.NEWLINE, tokenize.ENDMARKER)
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
#: More than anyone writes by hand: comments in a run, names in a comment, characters in a file.
_MOST_COMMENTS, _MOST_WORDS, _MOST_CHARACTERS = 1000, 20, 500_000
#: Comments without use that are worth naming.
_MOST_UNUSED = 100


class Silenced(msgspec.Struct, frozen=True):
    """A finding that a comment in the source keeps out of the report."""

    rule: str
    code: str
    title: str
    file: str
    line: int


class UnusedIgnore(msgspec.Struct, frozen=True):
    """A comment, or one name in it, that silences nothing; ``why`` is the rest of the sentence."""

    file: str
    line: int
    comment: str
    why: str


class _Ignore(msgspec.Struct, frozen=True):
    """One comment at ``line``, which counts for the lines ``first`` to ``last`` of its statement.

    ``words`` are empty where it names no rule and so means all.
    """

    file: str
    line: int
    first: int
    last: int
    words: tuple[str, ...]

    def silences(self, finding: Finding, word: str) -> bool:
        places = [place for place in (finding.location, *finding.also_at) if place is not None]
        here = any(
            place.file == self.file and self.first <= place.line <= self.last for place in places
        )
        name, code = word.lower(), word.upper()
        return here and (word == ALL or name == finding.rule or code == finding.code)


def silence(
    findings: Iterable[Finding],
    files: Iterable[str],
    read: ReadSource,
    rules: Collection[Rule],
    checked: Collection[str],
) -> tuple[tuple[Finding, ...], tuple[Silenced, ...], tuple[UnusedIgnore, ...]]:
    """(findings that stay, those that comments in ``files`` silence, comments that silence none).

    ``rules`` are all that there are, ``checked`` the names of those that had what they need: of a
    rule that was not checked, the comment may still be needed.
    """
    every = (comment for file in files for comment in _comments(file, read(file)))
    comments = list(islice(every, _MOST_COMMENTS))
    used: set[tuple[_Ignore, str]] = set()
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    for finding in findings:
        by = [
            (comment, word)
            for comment in comments
            for word in comment.words or (ALL,)
            if comment.silences(finding, word)
        ]
        used.update(by)
        if by:
            at = by[0][0]
            silenced.append(Silenced(finding.rule, finding.code, finding.title, at.file, at.line))
        else:
            kept.append(finding)
    unused: list[UnusedIgnore] = []
    for comment in comments:
        for word in comment.words or (ALL,):
            if (comment, word) in used:
                continue
            text = "# traceview: ignore" + (f"[{word}]" if word != ALL else "")
            named = [rule for rule in rules if word.lower() in (rule.name, rule.code.lower())]
            if word != ALL and not named:
                family = matching(rules, word)
                remedy = "Name its rules instead." if family else did_you_mean(rules, word)
                why = f"names no rule. {remedy}"
            elif word == ALL:
                why = "silences nothing that was checked in this run."
            elif named[0].name in checked:
                why = "silences nothing in this run: take it away."
            else:
                continue
            unused.append(UnusedIgnore(comment.file, comment.line, text, why))
    return tuple(kept), tuple(silenced), tuple(unused[:_MOST_UNUSED])


def _comments(file: str, text: str | None) -> Iterator[_Ignore]:
    """The comments of one file; what can't be cut into tokens is searched up to there."""
    if text is None or len(text) > _MOST_CHARACTERS or not _COMMENT.search(text):
        return
    found: list[tuple[int, tuple[str, ...]]] = []
    first: int | None = None
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    try:
        for token in tokens:
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
                # No brackets name no rule and so mean all; an empty pair names nothing.
                parts = dict.fromkeys(filter(None, map(str.strip, (match[1] or "").split(","))))
                words = tuple(parts)[:_MOST_WORDS] or (() if match[1] is None else ("",))
                found.append((token.start[0], words))
            if token.type in _LINE_ENDS:
                last = token.start[0]
                yield from (
                    _Ignore(file, line, min(line, first or line), max(line, last), words)
                    for line, words in found
                )
                found, first = [], None
            elif first is None and token.type not in _NO_CODE:
                first = token.start[0]
            elif first is None and token.type == tokenize.NL:
                yield from (_Ignore(file, line, line, line, words) for line, words in found)
                found = []
    except (tokenize.TokenError, SyntaxError):
        yield from (_Ignore(file, line, line, line, words) for line, words in found)
