"""What must not leave the machine, taken out of texts: learned from all of them, then replaced.

A secret is found by its shape or its name in one place and has to go everywhere, in whatever form
it is written. So all texts are read twice: ``learn`` collects values, ``redacted`` replaces each of
them and what is private only where it stands. ``leaks`` searches what was written once more.

Texts are pieces of whole lines, as str of Latin-1: every byte is one character, whatever it means.
polars' regular expressions and multi-pattern search choose the few lines that are looked at here.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args
from urllib.parse import quote, quote_plus

import polars as pl

from traceview.collectors.child.secrets import SHAPES
from traceview.ticket.private import (
    ADDRESS,
    CONSTANT,
    PERSON,
    SHORTEST,
    VARIABLE,
    Place,
    hidden_in,
    homes_in,
    is_someone,
    places_in,
    spots_in,
    unescaped,
    values_in,
    wide_in,
)

Level = Literal["standard", "strict", "none"]
LEVELS: tuple[Level, ...] = get_args(Level)
_SMALL, _FEW, _MOST_IN_PATTERN = 10_000, 16, 5_000
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
_BETWEEN_TEXTS = "\n\x1e\n"
_MOST_PLACES = 100_000
#: A string that is no one else's: with a capital after a space, or with letters and digits.
_ALONE = re.compile(r" .*[A-Z]|[A-Z].* |(?=.*[A-Za-z])(?=.*[0-9])^[\w\-.+!#]+$")
_LEAST_ALONE = 8
_NO_WORD = re.compile(r"[^A-Za-z_.\-]")
#: What base64 for URLs has instead.
_SAFE = str.maketrans("+/", "-_")
#: Words of the masks, next to the names of shapes.
_KINDS = (
    *(CONSTANT, VARIABLE, PERSON, ADDRESS, "masked string ", "password", "key or token", "cookie"),
    *("e-mail address", "private key", "URL credentials", "authorization header", "home folder"),
    *(
        "project folder",
        "source line",
        "user_function_",
        "user_class_",
        "user_file_",
        "user_module_",
    ),
)
_MARKS = ("'", '"', '\\"', "\\'", "&#39;", "&#34;", "&quot;")


@dataclass
class _Value:
    """One text that is replaced wherever it is found.

    ``bounded``: only as a whole word or path, since longer words may contain it. ``quoted``: only
    between quotation marks, since it may be an ordinary phrase.
    """

    kind: str
    instead: str
    bounded: bool = False
    quoted: bool = False


class _Part(NamedTuple):
    """A line, or a part of a long one, in which ``NAME=value`` is no variable's."""

    text: str
    whole: bool


@dataclass
class Redaction:
    """Values to take out, and what was taken out of which file."""

    level: Level = "standard"
    #: kind → file → how often. Of files that were written only.
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _values: dict[str, _Value] = field(default_factory=dict)
    _numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Every form of every value; made again after one was added.
    _literals: dict[str, _Value] | None = None
    _pattern: str = ""
    _bounded: dict[str, re.Pattern[str]] = field(default_factory=dict)
    #: Hash of a piece → where it has a hint of something private.
    _spots: dict[int, pl.DataFrame] = field(default_factory=dict)
    #: Hash of what is there → what is private in it: logs repeat most of theirs.
    _places: dict[int, tuple[Place, ...]] = field(default_factory=dict)

    def add(
        self, value: str, kind: str, instead: str | None = None, *, bounded: bool | None = None
    ) -> None:
        """``value`` is replaced everywhere, by ``instead`` or a mask that names the kind.

        ``bounded``: as a whole word or path only, as paths and names are, unless it is given; so is
        what may be part of another word.
        """
        if self.level == "none" or value in self._values or _is_ours(value):
            return
        if bounded is None:
            bounded = instead is not None or kind in (PERSON, ADDRESS)
        self._values[value] = _Value(kind, instead or f"[masked {kind}]", bounded)
        self._literals = None

    def constant(self, value: str) -> str:
        """A string of the user's code: what stands in its place. Replaced elsewhere, too.

        A single word without a digit is not: the keys of logs are such words.
        """
        instead = self.numbered("string", value)
        fits = len(value) >= SHORTEST and value not in self._values and not _is_ours(value)
        if fits and _NO_WORD.search(value):
            whole = len(value) >= _LEAST_ALONE and _ALONE.search(value) is not None
            self._values[value] = _Value(CONSTANT, instead, quoted=not whole)
            self._literals = None
        return instead

    def numbered(self, what: str, value: str) -> str:
        """``[masked string 3]``: the same number wherever the value is."""
        known = self._numbers.setdefault(what, {})
        return f"[masked {what} {known.setdefault(value, len(known) + 1)}]"

    def learn(self, text: str) -> None:
        """Collect what is private in a piece of text."""
        if self.level == "none":
            return
        text = unescaped(text)
        if "PRIVATE KEY" in text:
            self._learn_from(text)
        new = self._look(
            _Part(text[begin:end], whole) for begin, end, whole in self._spots_of(text)
        )
        for part in new:
            self._learn_from(part.text, self._places[hash(part)])
        self._learn_homes(text)
        for hidden in (*hidden_in("\n".join(part.text for part in new)), *wide_in(text)):
            self._learn_homes(hidden)
            self._learn_from(hidden)

    def redacted(self, text: str, file: str = "") -> str:
        """``text`` without what is private; what was replaced counts for ``file``."""
        if self.level == "none":
            return text
        text, done = unescaped(text), 0
        texts: list[str] = []
        for begin, end, whole in self._spots_of(text):
            part = _Part(text[begin:end], whole)
            self._look([part])
            texts += (text[done:begin], self._without_places(part, file))
            done = end
        return self._without_values("".join((*texts, text[done:])) if texts else text, file)

    def in_texts(self, texts: Sequence[str]) -> list[str]:
        """The same of several str of ours, which are not Latin-1."""
        joined = _BETWEEN_TEXTS.join(text.replace("\x1e", " ") for text in texts)
        self.learn(joined := latin(joined))
        found = self.redacted(joined).encode("latin-1").decode("utf-8", "surrogateescape")
        return found.split(_BETWEEN_TEXTS) if texts else []

    def in_text(self, text: str) -> str:
        """One such text."""
        return self.in_texts([text])[0]

    def leaks(self, text: str) -> str | None:
        """The kind of a value that was to be taken out and is in ``text``."""
        literals, text = self._known_literals(), unescaped(text)
        for literal in self._found(text):
            pattern = self._bounded.get(literal)
            if pattern is None or pattern.search(text):
                return literals[literal].kind
        return None

    @property
    def longest(self) -> int:
        """Characters of the longest form of a value: pieces that are searched overlap by it."""
        return max(map(len, self._known_literals()), default=1)

    def table(self) -> list[tuple[str, int, int]]:
        """Kind, how often it was replaced, in how many files."""
        rows = ((kind, sum(files.values()), len(files)) for kind, files in self.counts.items())
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def person(self, name: str) -> None:
        """The name of a user or a machine, unless it is everyone's or a word."""
        if is_someone(name):
            self.add(name, PERSON)

    def _spots_of(self, text: str) -> Iterable[tuple[int, int, bool]]:
        """Where a piece has lines, or parts of long ones, that have to be looked at."""
        if (key := hash(text)) not in self._spots:
            self._spots[key] = spots_in(text)
        return self._spots[key].iter_rows()

    def _look(self, parts: Iterable[_Part]) -> list[_Part]:
        """Those that were not looked at before."""
        if len(self._places) > _MOST_PLACES:
            self._places.clear()
        new = [part for part in dict.fromkeys(parts) if hash(part) not in self._places]
        for part in new:
            self._places[hash(part)] = tuple(sorted(places_in(part.text, whole=part.whole)))
        return new

    def _learn_from(self, text: str, places: Sequence[Place] | None = None) -> None:
        for value, kind in values_in(text, places_in(text) if places is None else places):
            if kind == CONSTANT:
                self.constant(value)
            else:
                self.add(value, kind)

    def _learn_homes(self, text: str) -> None:
        for home, owner in homes_in(text):
            self.add(home, "home folder", "~")
            self.person(owner)

    def _found(self, text: str) -> list[str]:
        """The forms that are in ``text``; of two that overlap at least the longer."""
        literals = self._known_literals()
        if len(text) < _SMALL:
            return [literal for literal in literals if literal in text]
        one = pl.Series([text], dtype=pl.String)
        if len(literals) > _MOST_IN_PATTERN:
            patterns = pl.Series(list(literals), dtype=pl.String).implode()
            found = one.str.extract_many(patterns, overlapping=True)
        else:  # polars keeps what it made of a regular expression, and makes the other one again
            found = one.str.extract_all(self._pattern)
        return list(map(str, found.explode().drop_nulls().unique()))

    def _without_values(self, text: str, file: str) -> str:
        literals = self._known_literals()
        there = sorted(self._found(text), key=len, reverse=True)
        for literal in there:
            if literal in self._bounded:
                value = literals[literal]
                text, times = self._bounded[literal].subn(value.instead, text)
                self._count(value.kind, file, times)
        others = [literal for literal in there if literal not in self._bounded]
        if len(others) > _FEW:
            return self._without_many(others, text, file)
        for literal in others:
            self._count(literals[literal].kind, file, text.count(literal))
            text = text.replace(literal, literals[literal].instead)
        return text

    def _without_many(self, those: list[str], text: str, file: str) -> str:
        """The same in two passes over ``text``, however many there are; longest first."""
        literals, one = self._known_literals(), pl.Series([text], dtype=pl.String)
        patterns = pl.Series(those, dtype=pl.String).implode()
        found = one.str.extract_many(patterns, leftmost=True).explode().value_counts()
        for literal, times in found.iter_rows():
            if literal is not None:
                self._count(literals[literal].kind, file, times)
        instead = pl.Series([literals[literal].instead for literal in those]).implode()
        return str(one.str.replace_many(patterns, instead, leftmost=True)[0])

    def _without_places(self, part: _Part, file: str) -> str:
        """What is private by where it stands: behind a name, in a guard, in a variable."""
        text, done, parts = part.text, 0, []
        for begin, end, kind in self._places[hash(part)]:
            if begin >= done and not text[begin:end].startswith(("[masked", "<masked")):
                parts += [text[done:begin], f"[masked {kind}]"]
                done = end
                self._count(kind, file, 1)
        return "".join((*parts, text[done:])) if parts else text

    def _count(self, kind: str, file: str, times: int) -> None:
        if file and times:
            self.counts[kind][file] += times

    def _known_literals(self) -> dict[str, _Value]:
        if self._literals is not None:
            return self._literals
        found: dict[str, _Value] = {}
        self._bounded.clear()
        for value, how in self._values.items():
            for form in text_forms(value):
                if how.quoted:
                    for mark in _MARKS:
                        quoted = _Value(how.kind, f"{mark}{how.instead}{mark}")
                        found.setdefault(f"{mark}{form}{mark}", quoted)
                    continue
                found.setdefault(form, how)
                if how.bounded:
                    self._bounded[form] = _whole(form)
            for form in () if how.quoted else packed_forms(value):
                found.setdefault(form, how)
        longest = sorted(found, key=len, reverse=True)
        self._pattern = "|".join(_META.sub(r"\\\g<0>", literal) for literal in longest) or "$^"
        self._literals = found
        return found


def _is_ours(value: str) -> bool:
    """Whether it is a mask, or the masks have it: it could not be taken out."""
    return "[masked" in value or any(value in kind for kind in (*SHAPES, *_KINDS))


def text_forms(value: str) -> Iterator[str]:
    """``value`` as texts have it: as it is, escaped for JSON, Python or HTML, quoted for URLs.

    ``value`` is Latin-1 for the bytes of UTF-8.
    """
    data = value.encode("latin-1")
    plain = data.decode("utf-8", "replace")
    quoted, safe = json.dumps(plain)[1:-1], html.escape(plain)
    texts = [plain, quoted, quoted.replace("/", "\\/"), quoted.replace("\\", "\\\\")]
    texts += [repr(plain)[1:-1], safe, safe.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")]
    urls = [quote(data, safe=""), quote(data), quote_plus(data)]
    urls.append("".join(f"%{byte:02X}" for byte in data))
    texts += [*urls, *(re.sub("%..", lambda found: found[0].lower(), url) for url in urls)]
    yield from dict.fromkeys((value, *map(latin, texts)))


def packed_forms(value: str) -> Iterator[str]:
    """``value`` in UTF-16, and in base64 wherever it begins in what was packed."""
    data = value.encode("latin-1")
    plain = data.decode("utf-8", "replace")
    for encoding in ("utf-16-le", "utf-16-be"):
        yield plain.encode(encoding, "replace").decode("latin-1")
    for start in range(3 if len(data) >= SHORTEST else 0):
        packed = base64.b64encode(b"\0" * start + data).decode()
        whole = len(packed) - (0, 3, 2)[(start + len(data)) % 3]
        word = packed[(0, 2, 3)[start] : whole]
        yield from dict.fromkeys((word, word.translate(_SAFE)))


def latin(text: str) -> str:
    """A str of ours as the texts here are: a character for each byte of UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _whole(form: str) -> re.Pattern[str]:
    """``form`` where it is no part of a longer word or path."""
    word = re.escape(form)
    # Before it no letter or digit, but for those of ``%20`` and ``\\n``.
    edges = "|".join(
        (
            rf"(?<![A-Za-z0-9_]{word})",
            rf"(?<=%[0-9A-Fa-f][0-9A-Fa-f]{word})",
            rf"(?<=\\[nrt]{word})",
        )
    )
    before = "" if form[0] in "/\\%" else f"(?:{edges})"
    return re.compile(rf"{word}{before}(?![A-Za-z0-9_\-])")
