"""What must not leave the machine, taken out of texts: learned from all of them, then replaced.

A secret is found by its shape or its name in one place and has to go everywhere, in whatever form
it is written. So all texts are read twice: ``learn`` collects values, ``redacted`` replaces each of
them and what is private only where it stands. ``leaks`` searches what was written once more.

Texts are pieces of whole lines, as str of Latin-1: every byte is one character, whatever it means.
polars' regular expressions and multi-pattern search choose the few lines that are looked at here.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import quote, quote_plus, unquote_to_bytes

import polars as pl

from traceview.collectors.child.secrets import SHAPES, looks_random, secrets_in

Level = Literal["standard", "strict", "none"]
LEVELS: tuple[Level, ...] = get_args(Level)
#: A shorter value is replaced only where its name is: elsewhere it is most likely another word.
SHORTEST = 6
#: Longer lines are looked at in parts: those of a JSON object.
_LONG = 300
_PART = ", "
_BETWEEN_TEXTS = "\n\x1e\n"
_MOST_SEEN = 500_000
_EMAIL = re.compile(
    r"(?<![\w.+\-])(?:(?<=\\n)|(?<=\\t))?[A-Za-z0-9][\w.+\-]*@(?:[A-Za-z0-9][\w\-]*\.)+"
    r"(?:com|org|net|edu|gov|io|ai|dev|app|cloud|info|local|internal|corp|example|test|invalid"
    r"|ac|at|au|be|br|ca|ch|cn|co|cz|de|dk|es|eu|fi|fr|gr|hk|hu|ie|il|in|jp|kr|lu|mx|nl|no|nz|pl"
    r"|pt|ro|ru|se|sg|sk|tr|tw|ua|uk|us|za)(?![\w(\-])",
    re.ASCII,
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(
    rf"(?:(?<![\w.\-])|(?<=\\n)|(?<=\\t))(?:{_OCTET}\.){{3}}{_OCTET}(?![\w\-]|\.\d)", re.ASCII
)
_IPV6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[23][0-9a-fA-F]{3}|fe[89abAB][0-9a-fA-F]|f[cdCD][0-9a-fA-F]{2})"
    r"(?::[0-9a-fA-F]{1,4}){0,6}::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?)(?![\w:])"
)
#: Addresses of no machine in particular.
_NO_ONES = re.compile(r"127\.|0\.0\.0\.0$|255\.255\.|(?:0:){7}")
#: Four numbers are a version, too.
_VERSION = re.compile(r"(?i)nvidia|cu\d\d|cudnn|cublas|nccl|version|driver|==|release|\bv\Z")
_PERSON = re.compile(r"[^/\s\"'\\:,;<>()\[\]{}%&]{1,64}")
_HOST = re.compile(
    r"(?i:host_?name|nodename|node_name|user_?name|logname|SLURMD_NODENAME)\\*[\"']?\s*[:=]\s*\\*[\"']?"
    r"(?P<value>[A-Za-z0-9][\w.\-]{2,80})"
)
#: A string that a guard or a line of code compares with.
_COMPARED = re.compile(
    r"[=!]= ?\\*(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\\\r\n]){3,300})\\*(?P=quote)"
)
_VALUE = r"(?:(?!\\*[\"'])[^\r\n,;}]){1,2000}"
_ASSIGNED = re.compile(
    r"(?:^|\\[nt]|\bexport |\benv )(?P<name>[A-Z][A-Z0-9_]{2,60})"
    rf"=\\*[\"']?(?P<value>{_VALUE})"
)
_IN_MAPPING = re.compile(
    r"(?:environ\W{0,3}|[{,]\s?|^\s*)\\*[\"'](?P<name>[A-Z][A-Z0-9_]{2,60})\\*"
    rf"[\"']\s?:\s?\\*[\"'](?P<value>{_VALUE})"
)
#: What variables may have in a ticket; the names of others stay, their values go.
HARMLESS_VARIABLES = re.compile(
    r"(?:TORCH|PYTORCH|TORCHINDUCTOR|TORCHDYNAMO|INDUCTOR|CUDA|CUBLAS|CUDNN|NVIDIA|TRITON|OMP|MKL"
    r"|KMP|GOMP|NCCL|ATEN|AOT|TRACEVIEW|MALLOC)(?:_|[A-Z0-9]*_)?\w*|LD_PRELOAD|CXX|CC|RANK|WORLD_SIZE"
    r"|LOCAL_RANK|LOCAL_WORLD_SIZE|TEARDOWN_CUPTI|PYTHONHASHSEED|PYTHONPATH"
)
_ESCAPED = re.compile(r"\\u00(2[013-9a-fA-F]|[3467][0-9a-fA-F]|5[0-9abdefABDEF])")
_WIDE = re.compile(r"(?:[\t -~]\x00){6,}|(?:\x00[\t -~]){6,}")
_STRONG = r"pass(?:word|wd|phrase|code)|pwd|secret|creds|credential|auth(?:orization|token)|dsn|api_?key|cookie"
_WEAK = r"(?i:token|key|auth|sig|signature|pat|pass|bearer)"
_BETWEEN = r"\\*[\"']?\]?\s{0,3}(?:=|:|%3[aAdD])\s{0,3}\\*[\"']?"
_RANDOM = r"[A-Za-z0-9+/_.~\-]{0,40}[A-Za-z][+/_.~\-]{0,3}[0-9][+/_.~\-]{0,3}[A-Za-z]"
_HINTS = "|".join(
    (
        rf"(?i:{_STRONG})[A-Za-z0-9_.\-]{{0,24}}{_BETWEEN}[^\s\"'\\\[\](){{}}<>,;=&]",
        rf"{_WEAK}{_BETWEEN}(?:[A-Za-z]+\s+)?{_RANDOM}",
        rf"--?[A-Za-z0-9_.\-]{{0,30}}(?:(?i:{_STRONG})[A-Za-z0-9_.\-]{{0,20}}|{_WEAK})\s+[^\s\-]",
        r"(?i:bearer|basic|token|secret|password|credential|key)s?(?: is| was| of)?[\s\"'`<(]{1,3}"
        + _RANDOM,
        r"[A-Za-z0-9]@[A-Za-z0-9][A-Za-z0-9\-]*\.[A-Za-z]",
        r"://[^\s/?#'\"]*@|[A-Za-z0-9_+\-]:[^\s:@/'\"]+@[A-Za-z0-9]",
        r"(?:^|[^A-Za-z0-9_.\-]|\\[nt])(?:[0-9]{1,3}\.){3}[0-9]",
        r"[0-9a-fA-F]:[0-9a-fA-F]{0,4}:[0-9a-fA-F]{0,4}:",
        *(shape.replace(r"\w", "[A-Za-z0-9_]") for shape in SHAPES.values()),
    )
)
_GUARDS = r"[=!]= ?\\*[\"'][^\s\"'\\]"
#: Words that may be base64, or quoted for a URL.
_WORDS = (r"[A-Za-z0-9+/]{24,}={0,2}", r"[^\s\"'<>]*%[2-7][0-9A-Fa-f][^\s\"'<>]*")
_NAMED_HOSTS = r"(?i:host_?name|nodename|node_name|user_?name|logname)"
_VARIABLES = (
    r"(?:^|\\[nt]|export |env )[A-Z][A-Z0-9_]{2,60}=\S"
    r"|[\"'][A-Z][A-Z0-9_]{2,60}\\*[\"']\s?:\s?\\*[\"']"
)
#: Lines with nothing of this have nothing private but values that are known. Rust's dialect.
_LOOK = "|".join((_HINTS, _GUARDS, _NAMED_HOSTS, _VARIABLES, r"\"section\": ?\"env\""))
#: Names of people and machines that are everyone's.
_COMMON = frozenset(
    "user root ubuntu admin runner home nobody default jovyan coder vscode docker node worker debian"
    " centos fedora workspace ec2-user localhost localhost.localdomain python torch pytorch trace"
    " train model tensor compile linux shared public guest build data".split()
)
#: Strings of torch and Python that say nothing about anyone.
HARMLESS_STRINGS = frozenset(
    "cpu cuda mps xpu meta hip inductor eager aot_eager aot_eager_decomp_partition default"
    " reduce-overhead max-autotune max-autotune-no-cudagraphs train eval training mean sum none"
    " relu gelu silu tanh sigmoid softmax nearest bilinear bicubic bfloat16 float16 float32 float64"
    " int8 int32 int64 bool highest high medium forward backward weight bias loss step utf-8 utf8"
    " ascii __main__ same valid zeros reflect constant replicate fan_in fan_out linear batch token"
    " input inputs output outputs nccl gloo triton strided contiguous_format channels_last zero"
    " fixed variable causal full True False None".split()
)


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


@dataclass
class Redaction:
    """Values to take out, and what was taken out of which file."""

    level: Level = "standard"
    #: kind → file → how often. Of files that were written only.
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _values: dict[str, _Value] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _literals: dict[str, _Value] | None = None
    _bounded: dict[str, re.Pattern[str]] = field(default_factory=dict)
    #: Lines and parts that were read before: logs repeat most of theirs.
    _seen: set[int] = field(default_factory=set)
    #: Lines with a hint of something private.
    _looked: set[int] = field(default_factory=set)

    def add(self, value: str, kind: str, instead: str | None = None) -> None:
        """``value`` is replaced everywhere, by ``instead`` or a mask that names the kind.

        Paths and names are replaced as whole ones only; so is what may be part of another word.
        """
        if self.level == "none" or not value or value in self._values or "[masked" in value:
            return
        bounded = instead is not None or kind in ("host or user name", "name")
        self._values[value] = _Value(kind, instead or f"[masked {kind}]", bounded)
        self._literals = None

    def constant(self, value: str) -> str:
        """A string constant of the user's: what stands in its place. Replaced elsewhere, too."""
        instead = self.numbered("string", value)
        distinct = len(value) >= 8 and re.search(r"[A-Z0-9]", value) and value not in self._values
        if len(value) >= SHORTEST and value not in self._values and "[masked" not in value:
            whole = bool(distinct) and not re.fullmatch(r"[A-Z][a-z]+|[\d\W]+|[A-Z_]+", value)
            self._values[value] = _Value("string constant", instead, quoted=not whole)
            self._literals = None
        return instead

    def numbered(self, what: str, value: str) -> str:
        """``[masked string 3]``: the same number wherever the value is."""
        known = sum(1 for kind, _ in self._numbers if kind == what)
        return f"[masked {what} {self._numbers.setdefault((what, value), known + 1)}]"

    def learn(self, text: str) -> None:
        """Collect what is private in a piece of text."""
        if self.level == "none":
            return
        text = unescaped(text)
        if "PRIVATE KEY" in text:
            self._learn_from(text)
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        lines = set(text.split("\n"))
        long = [(line, line.split(_PART)) for line in lines if len(line) > _LONG]
        for line, parts in long:
            lines.remove(line)
            lines.update(parts)
        new = [part for part in lines if hash(part) not in self._seen]
        self._seen.update(map(hash, new))
        for index in _matching(new, _LOOK):
            self._looked.add(hash(new[index]))
            self._learn_from(new[index])
        for line, parts in long:
            if not self._looked.isdisjoint(map(hash, parts)):
                self._looked.add(hash(line))
        text = "\n".join(new)
        for word in _words(text):
            if (hidden := _hidden_in(word)) is not None:
                self._learn_from(hidden)
                self._learn_homes(hidden)
        self._learn_homes(text)
        if "\x00" in text:
            for found in _WIDE.finditer(text):
                self._learn_from(found[0].replace("\x00", ""))

    def redacted(self, text: str, file: str = "") -> str:
        """``text`` without what is private; what was replaced counts for ``file``."""
        if self.level == "none":
            return text
        lines = unescaped(text).split("\n")
        looked = self._looked
        for index in [n for n, key in enumerate(map(hash, lines)) if key in looked]:
            parts = lines[index].split(_PART) if len(lines[index]) > _LONG else [lines[index]]
            for place, part in enumerate(parts):
                if hash(part) in looked:
                    parts[place] = self._without_places(part, file)
            lines[index] = _PART.join(parts)
        return self._without_values("\n".join(lines), file)

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
        literals = self._known_literals()
        if not literals:
            return None
        for literal in _found(unescaped(text), literals):
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

    def _learn_from(self, text: str) -> None:
        for begin, end, kind in secrets_in(text):
            value = text[begin:end]
            if kind == "private key":
                for line in re.split(r"\\[nrt]|\s+", value):
                    if len(line) >= 16:
                        self.add(line, kind)
            elif kind == "cookie":
                for pair in value.split(";"):
                    self._add_secret(pair.partition("=")[2].strip(), kind)
            else:
                self._add_secret(value, kind)
        for found in _EMAIL.finditer(text):
            self.add(found[0], "e-mail address")
        for found in _addresses(text):
            self.add(found, "IP address")
        for found in _HOST.finditer(text):
            self.person(found["value"])
        for begin, end, kind in _variables_in(text):
            if looks_random(text[begin:end]):
                self.add(text[begin:end], kind)
        if _is_guard(text):
            for found in _COMPARED.finditer(text):
                if found["value"] not in HARMLESS_STRINGS:
                    self.constant(found["value"])

    def _learn_homes(self, text: str) -> None:
        for place in ("/home/", "/Users/"):
            for rest in set(text.split(place)[1:]) if place in text else ():
                if found := _PERSON.match(rest):
                    self.add(place + found[0], "home folder", "~")
                    self.person(found[0])

    def person(self, name: str) -> None:
        """The name of a user or a machine, unless it is everyone's or a word."""
        if len(name) >= 5 and name.lower() not in _COMMON and re.search("[A-Za-z]", name):
            self.add(name, "host or user name")

    def _add_secret(self, value: str, kind: str) -> None:
        mixed = re.search(r"[^A-Za-z]", value) and re.search(r"[A-Za-z0-9]", value)
        if len(value) >= SHORTEST and (mixed or len(value) >= 10):
            self.add(value, kind)

    def _without_values(self, text: str, file: str) -> str:
        literals = self._known_literals()
        if not literals:
            return text
        for literal in sorted(_found(text, literals), key=len, reverse=True):
            value = literals[literal]
            pattern = self._bounded.get(literal)
            if pattern is not None:
                instead = value.instead
                text, times = pattern.subn(lambda _, instead=instead: instead, text)
            else:
                times = text.count(literal)
                text = text.replace(literal, value.instead)
            if times:
                self.counts[value.kind][file] += times
        return text

    def _without_places(self, text: str, file: str) -> str:
        """What is private by where it stands: behind a name, in a guard, in a variable."""
        spans = [span for span in secrets_in(text) if "[masked" not in text[span[0] : span[1]]]
        spans += [(*found.span(), "e-mail address") for found in _EMAIL.finditer(text)]
        if _is_guard(text):
            spans += [
                (*found.span("value"), "string constant")
                for found in _COMPARED.finditer(text)
                if found["value"] not in HARMLESS_STRINGS and "[masked" not in found["value"]
            ]
        spans += _variables_in(text)
        done, parts = 0, []
        for begin, end, kind in sorted(spans):
            if begin >= done:
                parts += [text[done:begin], f"[masked {kind}]"]
                done = end
                self.counts[kind][file] += 1
        return "".join((*parts, text[done:])) if parts else text

    def _known_literals(self) -> dict[str, _Value]:
        """Every form of every value."""
        if self._literals is None:
            self._literals, self._bounded = {}, {}
            for value, how in self._values.items():
                for form in text_forms(value):
                    self._know(form, how)
                for form in () if how.quoted else packed_forms(value):
                    self._literals.setdefault(form, how)
        return self._literals

    def _know(self, form: str, how: _Value) -> None:
        if how.quoted:
            for mark in _MARKS:
                quoted = _Value(how.kind, f"{mark}{how.instead}{mark}")
                self._literals.setdefault(f"{mark}{form}{mark}", quoted)
            return
        self._literals.setdefault(form, how)
        if how.bounded:
            word = re.escape(form)
            before = "" if form[0] in "/\\%" else rf"(?<![A-Za-z0-9_]{word})"
            self._bounded[form] = re.compile(rf"{word}{before}(?![A-Za-z0-9_\-])")


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


def unescaped(text: str) -> str:
    r"""``text`` with ``\u0041`` as ``A``, which means the same in JSON and in Python."""
    if "\\u00" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _found(text: str, literals: Iterable[str]) -> list[str]:
    """Those of ``literals`` that are in ``text``."""
    patterns = pl.Series(list(literals), dtype=pl.String)
    one = pl.Series([text], dtype=pl.String)
    return (
        one.str.extract_many(patterns.implode(), overlapping=True)
        .explode()
        .drop_nulls()
        .unique()
        .to_list()
    )


def _matching(lines: list[str], hints: str) -> list[int]:
    """Numbers of the lines that have one of the hints."""
    return pl.Series(lines, dtype=pl.String).str.contains(hints).arg_true().to_list()


def _words(text: str) -> Iterator[str]:
    whole = pl.Series([text], dtype=pl.String)
    for pattern in _WORDS:
        yield from whole.str.extract_all(pattern).explode().drop_nulls().unique().to_list()


def _hidden_in(word: str) -> str | None:
    """What is written in ``word`` in another form: quoted for URLs, or in base64."""
    if "%" in word:
        return unquote_to_bytes(word.replace("+", " ")).decode("latin-1")
    packed = word.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4))
    except (binascii.Error, ValueError):
        return None
    return data.decode() if data.isascii() and data.decode().isprintable() else None


def _is_guard(text: str) -> bool:
    return any(mark in text for mark in ("L[", "G[", "guard", "___", "GUARD", "_MATCH"))


def _addresses(text: str) -> Iterator[str]:
    for pattern in (_IPV4, _IPV6):
        for found in pattern.finditer(text):
            before = text[max(0, found.start() - 30) : found.start()]
            if not _NO_ONES.match(found[0]) and not _VERSION.search(before):
                yield found[0]


#: What base64 for URLs has instead.
_SAFE = str.maketrans("+/", "-_")
_MARKS = ("'", '"', '\\"', "\\'", "&#39;", "&#34;", "&quot;")
#: Values of settings that have the name of a variable.
_PLAIN = frozenset(("", "0", "1", "true", "false", "True", "False", "None", "null", "constexpr"))
_EVENT = re.compile(
    r'"section": ?"env", "name": ?"(?P<name>[^"]*)", "value": ?"(?P<value>(?:[^"\\]|\\.)*)"'
)


def _variables_in(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_ASSIGNED, _IN_MAPPING, _EVENT):
        for found in pattern.finditer(text):
            value = found["value"]
            plain = value.strip() in _PLAIN or value.startswith(
                ("=", "[masked", "<masked", "~", "$")
            )
            if not plain and not HARMLESS_VARIABLES.fullmatch(found["name"]):
                yield *found.span("value"), "variable"
