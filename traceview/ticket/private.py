"""What is private beyond secrets: names, addresses, variables, the strings of guards.

Patterns are of two kinds: the short ones that polars looks for in every line (Rust's dialect), and
those that find the very place in the few lines that have one of them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

import polars as pl

from traceview.collectors.child.secrets import (
    SHAPES,
    STRONG_KEYS,
    STRONG_NAMES,
    WEAK_NAMES,
    looks_random,
    secrets_in,
)

#: Begin, end and kind of something in a text.
Place = tuple[int, int, str]
CONSTANT, VARIABLE = "string constant", "variable"
PERSON, ADDRESS = "host or user name", "IP address"
#: A shorter value is replaced only where its name is: elsewhere it is most likely another word.
SHORTEST = 6
_LONG_WORD, _KEY_LINE = 10, 16

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
_OWNER = r"([^/\s\"'\\:,;<>()\[\]{}%&]{1,64})"
_HOST = re.compile(
    r"(?i:host_?name|nodename|node_name|user_?name|logname)\\*[\"']?\s*[:=]"
    r"\s*\\*[\"']?(?P<value>[A-Za-z0-9][\w.\-]{2,80})"
)
#: A string that a guard or a line of code compares with.
_COMPARED = re.compile(
    r"[=!]= ?\\*(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\\\r\n]){3,300})\\*(?P=quote)"
)
_VALUE = r"(?:(?!\\*[\"'])[^\r\n,;}]){1,2000}"
_EXPORTED, _ASSIGNED = (
    re.compile(rf"{before}(?P<name>[A-Z][A-Z0-9_]{{2,60}})=\\*[\"']?(?P<value>{_VALUE})")
    for before in (r"(?:\\[nt]|\bexport |\benv )", "^")
)
_IN_MAPPING = re.compile(
    r"(?:environ\W{0,3}|[{,]\s?|^\s*)\\*[\"'](?P<name>[A-Z][A-Z0-9_]{2,60})\\*"
    rf"[\"']\s?:\s?\\*[\"'](?P<value>{_VALUE})"
)
#: What variables may have in a ticket; the names of others stay, their values go.
HARMLESS_VARIABLES = re.compile(
    r"(?:TORCH|PYTORCH|TORCHINDUCTOR|TORCHDYNAMO|INDUCTOR|CUDA|CUBLAS|CUDNN|NVIDIA|TRITON|OMP|MKL"
    r"|KMP|GOMP|NCCL|ATEN|AOT|TRACEVIEW|MALLOC)\w*|LD_PRELOAD|CXX|CC|RANK|WORLD_SIZE|LOCAL_RANK"
    r"|LOCAL_WORLD_SIZE|TEARDOWN_CUPTI|PYTHONHASHSEED|PYTHONPATH"
)
_ESCAPED = re.compile(r"\\u00(2[013-9a-fA-F]|[3467][0-9a-fA-F]|5[0-9abdefABDEF])")
#: The name of an operator, or what follows it in its schema.
_OPERATOR = re.compile(r"\w+::\w+(?:\.\w+)?|(?:\w+::)?\w*\(.*\) -> [\w()\[\], ]+")
#: What guards have.
_GUARD = ("L[", "G[", "guard", "GUARD", "___", "_MATCH")
_WIDE = re.compile(r"(?:[\t -~]\x00){6,}|(?:\x00[\t -~]){6,}")
_STRONG = "|".join((*sorted(STRONG_NAMES), "cookie", rf"(?:{'|'.join(sorted(STRONG_KEYS))})_?key"))
_WEAK = f"(?i:{'|'.join(sorted(WEAK_NAMES))})"
_BETWEEN = r"\\*[\"']?\]?\s{0,3}(?:=|:|%3[aAdD])\s{0,3}\\*[\"']?"
_SIGNS = r"[+/_.~\-]{0,3}"
_RANDOM = (
    rf"[A-Za-z0-9+/_.~\-]{{0,40}}(?:[A-Za-z]{_SIGNS}[0-9]+{_SIGNS}[A-Za-z]"
    rf"|[0-9]{_SIGNS}[A-Za-z]+{_SIGNS}[0-9])"
)
_HINTS = "|".join(
    (
        rf"(?i:{_STRONG})[A-Za-z0-9_.\-]{{0,24}}{_BETWEEN}[^\s\"'\\\[\](){{}}<>,;=&]",
        rf"{_WEAK}{_BETWEEN}(?:[A-Za-z]+\s+)?{_RANDOM}",
        rf"--?[A-Za-z0-9_.\-]{{0,30}}(?:(?i:{_STRONG})[A-Za-z0-9_.\-]{{0,20}}|{_WEAK})\s+[^\s\-]",
        r"(?i:bearer|basic)\s+" + _RANDOM,
        r"(?i:token|secret|passw(?:or)?d|credential|(?:api|access)[_ -]?key)s?"
        r"(?:\s+(?:is|was|of))?(?:[\s\"'`<>(,|:=\\-]|[^\x00-\x7F]|\\u[0-9a-f]{4})+" + _RANDOM,
        r"(?:^|[\s\"'])(?:-u|--user|--proxy-user)[\s=]\s*\\*[\"']?[^:/\s\"']+:[^\s\"'\\]",
        r"[A-Za-z0-9]@[A-Za-z0-9][A-Za-z0-9\-]*\.[A-Za-z]",
        r"://[^\s/?#'\"]*@|[A-Za-z0-9_+\-]:[^\s:@/'\"]+@[A-Za-z0-9]",
        r"(?:^|[^A-Za-z0-9_.\-]|\\[nt])(?:[0-9]{1,3}\.){3}[0-9]",
        r"[0-9a-fA-F]:[0-9a-fA-F]{0,4}:[0-9a-fA-F]{0,4}:",
        re.sub(r"\(\?<=(.*?)\)", r"\1", "|".join(SHAPES.values())).replace(r"\w", "[A-Za-z0-9_]"),
    )
)
_GUARDS = r"[=!]= ?\\*[\"'][^\s\"'\\]"
#: Words that may be base64, or quoted for a URL.
_WORDS = (r"[A-Za-z0-9+/]{24,}={0,2}", r"[^\s\"'<>]*%[2-7][0-9A-Fa-f][^\s\"'<>]*")
#: What these have, of base64 only where printable ASCII was packed: three bytes in four letters.
_HIDDEN = (
    r"(?:[I-Za-f][C-HS-Xi-ny-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/]){6}"
    r"|%[2-7][0-9A-Fa-f]"
)
_NAMED_HOSTS = r"(?i:host_?name|nodename|node_name|user_?name|logname)"
_VARIABLES = (
    r"(?:^|\\[nt]|export |env )[A-Z][A-Z0-9_]{2,60}=\S"
    r"|[\"'][A-Z][A-Z0-9_]{2,60}\\*[\"']\s?:\s?\\*[\"']"
)
#: Lines with nothing of this have nothing private but values that are known. Rust's dialect.
LOOK = "|".join((_HINTS, _GUARDS, _NAMED_HOSTS, _VARIABLES, _HIDDEN, r"\"section\": ?\"env\""))
#: Longer lines are looked at in parts: those of a JSON object.
_LONG = 300
_PART = ", "
#: What has a name in one part and its value in the next.
_UNDIVIDED, _LONGEST = ['"section": "env"', '"--', "'--", '\\"--'], 20_000
#: Names of people and machines that are everyone's.
_COMMON = frozenset(
    (
        *("user", "root", "ubuntu", "admin", "runner", "home", "default", "jovyan"),
        *("coder", "vscode", "docker", "node", "worker", "debian", "centos", "fedora"),
        *("workspace", "ec2-user", "localhost", "localhost.localdomain", "python", "torch"),
        *("pytorch", "trace", "train", "model", "tensor", "compile", "linux", "shared"),
        *("public", "guest", "build", "data"),
    )
)
#: Strings of torch and Python that say nothing about anyone.
HARMLESS_STRINGS = frozenset(
    (
        *("cpu", "cuda", "mps", "xpu", "meta", "hip", "inductor", "eager", "aot_eager"),
        *("aot_eager_decomp_partition", "default", "reduce-overhead", "max-autotune"),
        *("max-autotune-no-cudagraphs", "train", "eval", "training", "mean", "sum", "none"),
        *("relu", "gelu", "silu", "tanh", "sigmoid", "softmax", "nearest", "bilinear"),
        *("bicubic", "bfloat16", "float16", "float32", "float64", "int8", "int32", "int64"),
        *("bool", "highest", "high", "medium", "forward", "backward", "weight", "bias", "loss"),
        *("step", "utf-8", "utf8", "ascii", "__main__", "same", "valid", "zeros", "reflect"),
        *("constant", "replicate", "fan_in", "fan_out", "linear", "batch", "token", "input"),
        *("inputs", "output", "outputs", "nccl", "gloo", "triton", "strided"),
        *("contiguous_format", "channels_last", "zero", "fixed", "variable", "causal", "full"),
        *("true", "false", "aten", "cpp", "cutlass", "flash", "math", "efficient", "mem"),
    )
)


#: Values of torch's and Triton's settings, which have names as variables have.
_PLAIN = re.compile(
    r"[=~$]|(?:-?\d{0,8}|(?i:true|false|none|null|constexpr|default)|tl\.\w+|\*?[fiu]\w{1,6})$"
)
_EVENT = re.compile(
    r'"section": ?"env", "name": ?"(?P<name>[^"]*)", "value": ?"(?P<value>(?:[^"\\]|\\.)*)"'
)


def is_harmless(text: str) -> bool:
    """Whether a string is torch's or everyone's: ``cuda``, ``ATEN,TRITON``, ``lib::op``."""
    words = re.split(r"[,;| ]+", text)
    return all(word.lower() in HARMLESS_STRINGS for word in words) or bool(
        _OPERATOR.fullmatch(text)
    )


def spots_in(text: str) -> pl.DataFrame:
    """``begin`` and ``end`` of each line that may have something private, or of parts of it.

    ``whole``: it is a whole line. An event or a command line is not divided. A text that is there
    several times is looked at once: logs repeat most of theirs.
    """
    line, begin = pl.col("line"), pl.col("begin")
    length = line.str.len_chars().cast(pl.Int64)
    lines = (
        pl.DataFrame({"line": [text]})
        .select(line.str.split("\n").explode())
        .with_columns(begin=(length + 1).cum_sum() - length - 1)
    )
    event = pl.any_horizontal(line.str.contains(mark, literal=True) for mark in _UNDIVIDED)
    is_long = lines.select(length > _LONG).to_series()
    long = lines.filter(is_long)
    divided = long.select((length >= _LONGEST) | ~event).to_series()
    step = length + len(_PART)
    parts = (
        long.filter(divided)
        .select(line.str.split(_PART), begin - step.cum_sum() + step)
        .with_columns(whole=line.list.len() == 1)
        .explode("line")
        .with_columns(begin=begin + step.cum_sum() - step)
    )
    whole = pl.concat([lines.filter(~is_long), long.filter(~divided)])
    both = pl.concat([whole.with_columns(whole=True), parts])
    texts = both["line"].unique()
    hints = texts.filter(texts.str.contains(LOOK))
    found = both.filter(both["line"].is_in(hints.implode()))
    return found.select(begin, end=begin + length, whole="whole").sort("begin")


def places_in(text: str, *, whole: bool = True) -> Iterator[Place]:
    """Begin, end and kind of what is private by its shape or by where it stands.

    ``whole``: ``text`` is a whole line, so that ``NAME=value`` may be a variable.
    """
    yield from secrets_in(text)
    for found in _EMAIL.finditer(text):
        yield *found.span(), "e-mail address"
    for pattern in (_IPV4, _IPV6):
        for found in pattern.finditer(text):
            before = text[max(0, found.start() - 30) : found.start()]
            if not _NO_ONES.match(found[0]) and not _VERSION.search(before):
                yield *found.span(), ADDRESS
    if any(mark in text for mark in _GUARD):
        for found in _COMPARED.finditer(text):
            if not is_harmless(found["value"]):
                yield *found.span("value"), CONSTANT
    for pattern in (*((_ASSIGNED,) if whole else ()), _EXPORTED, _IN_MAPPING, _EVENT):
        for found in pattern.finditer(text):
            if not _PLAIN.match(found["value"].strip()) and not HARMLESS_VARIABLES.fullmatch(
                found["name"]
            ):
                yield *found.span("value"), VARIABLE


def values_in(text: str, places: Iterable[Place]) -> Iterator[tuple[str, str]]:
    """Value and kind of what has to go wherever it is, since no one else has such a word."""
    for begin, end, kind in places:
        value = text[begin:end]
        if kind == "private key":
            words = re.split(r"\\[nrt]|\s+", value)
            yield from ((word, kind) for word in words if len(word) >= _KEY_LINE)
        elif kind == "cookie":
            pairs = (pair.partition("=")[2].strip() for pair in value.split(";"))
            yield from ((word, kind) for word in pairs if is_distinct(word))
        elif kind == VARIABLE:
            if looks_random(value):
                yield value, kind
        elif kind in (CONSTANT, ADDRESS) or is_distinct(value):
            yield value, kind
    for found in _HOST.finditer(text):
        if is_someone(found["value"]):
            yield found["value"], PERSON


def homes_in(text: str) -> Iterator[tuple[str, str]]:
    """Home folders, each with its owner."""
    for place in ("/home/", "/Users/"):
        for owner in dict.fromkeys(re.findall(place + _OWNER, text)):
            yield place + owner, owner


def hidden_in(text: str) -> Iterator[str]:
    """What is written in ``text`` in another form: quoted for URLs, in base64."""
    whole = pl.Series([text], dtype=pl.String)
    for pattern in _WORDS:
        for word in whole.str.extract_all(pattern).explode().drop_nulls().unique().to_list():
            if "%" in word:
                yield unquote_to_bytes(word.replace("+", " ")).decode("latin-1")
                continue
            try:
                data = base64.b64decode(word.rstrip("=") + "=" * (-len(word.rstrip("=")) % 4))
            except (binascii.Error, ValueError):
                continue
            if data.isascii() and data.decode().isprintable():
                yield data.decode()


def wide_in(text: str) -> Iterator[str]:
    """What is written in ``text`` in UTF-16."""
    if "\x00" in text:
        yield from (found[0].replace("\x00", "") for found in _WIDE.finditer(text))


def unescaped(text: str) -> str:
    r"""``text`` with ``\u0041`` as ``A``, which means the same in JSON and in Python."""
    if "\\u00" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def is_someone(name: str) -> bool:
    """Whether the name of a user or a machine is theirs alone, and no word."""
    known = name.lower() in _COMMON or name.lower() in HARMLESS_STRINGS
    return len(name) >= 5 and not known and re.search("[A-Za-z]", name) is not None


def is_distinct(value: str) -> bool:
    """Whether it is most likely no word or number of anything else."""
    letters = sum(map(str.isalpha, value))
    return (
        len(value) >= SHORTEST and letters > 0 and (letters < len(value) or letters >= _LONG_WORD)
    )
