"""What looks like a secret in arguments, variables and messages is masked before it is written.

The parent imports this module, too: the run folder and the events have the same words. A ticket is
searched more strictly, for the same names and shapes (``secrets_in``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import log2

MASK = "<masked>"
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+")
#: Parts of a name that make it one of a secret wherever they stand.
_ALWAYS = frozenset(
    (
        *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "apikey"),
        *("credential", "credentials", "creds", "signature", "authorization", "authtoken", "dsn"),
        *("accesstoken", "accesskey", "secretkey", "privatekey", "hftoken", "jwt", "pw", "otp"),
    )
)
_ALWAYS_ENDS = ("password", "passwords", "passwd", "passphrase")
#: The same at its end, unless one of ``_HARMLESS`` is before it: ``pad_token``, ``--sort-key``;
#: many of them only after one of ``_OF_SECRETS``.
_LAST = frozenset(("token", "key", "auth", "pass", "sig", "pat", "cookie", "bearer"))
_PLURALS = frozenset(("keys", "tokens"))
_OF_SECRETS = frozenset(("api", "access", "auth", "secret", "private", "refresh", "bearer", "hf"))
_HARMLESS = frozenset(
    (
        *("pad", "eos", "bos", "unk", "sep", "cls", "mask", "image", "img", "audio", "video"),
        *("special", "start", "end", "stop", "per", "next", "prefix", "prompt", "first", "last"),
        *("sort", "label", "data", "input", "output", "target", "group", "primary", "foreign"),
        *("batch", "state", "param", "weight", "model", "metric", "monitor", "column", "feature"),
        *("one", "two", "single", "multi", "forward", "backward", "num", "max", "min", "query"),
        *("text", "cache"),
    )
)
_NAME = r"[A-Za-z][\w.\-]{0,100}"
_VALUE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,;&'\"(){}\[\]]+", re.DOTALL)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![\w./\-])-{{0,2}}{_NAME})(?P<between>[\"']?\s*(?:=|:(?!//))\s*)"
)
_OPTION = re.compile(rf"(?P<name>(?<![^\s'\"])--?{_NAME})(?P<between>\s+|['\"],\s*(?=['\"]))")
_WHOLE_WORD = re.compile(rf"(?P<name>[+-]{{0,2}}{_NAME})=.+", re.DOTALL)
#: In prose only what is assigned without a space, or behind a quoted key.
_IN_PROSE = re.compile(rf"(?P<name>(?<![\w./\-])-{{0,2}}{_NAME})(?P<between>=|[\"']\s*:\s*)")
_BEGUN = re.compile(
    rf"(?P<name>(?<![\w./\-])-{{0,2}}{_NAME})\\*[\"']?\s{{0,9}}(?:=|:(?!//))\s{{0,9}}\\*", re.ASCII
)
_FIRST_OF_VALUE = re.compile(r"\"[^\"]{0,2000}\"|'[^']{0,2000}'|[^\s,;&'\"(){}\[\]]{1,2000}")
_REST_OF_VALUE = re.compile(r"[^\s,;&'\"(){}\[\]]*")
#: ``scheme://user:password@`` and ``https://token@``: up to the last @ of the authority. A password
#: may have a slash that is not escaped; what is behind a port is a path.
_URL_USER = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]*://)"
    r"(?P<user>[^\s/?#'\"]*|[^\s/?#'\"@:]*:(?!\d+[/?#])[^\s'\"@]*)@"
)
#: A proxy without a scheme, as curl takes it.
_USER_AT_HOST = re.compile(
    r"(?<![\w/:@.\-])(?P<user>[\w.+\-]{1,100}):(?P<secret>[^\s:@/'\"]+)@(?=\w)"
)
_BEARER = re.compile(r"\b(?P<scheme>Bearer|Basic)\s+[\w.~+/=\-]{8,}", re.IGNORECASE)
#: Where a word begins: also after an escaped newline, ``%3D`` and ``\\u003d``.
EDGE = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9a-fA-F]{4}))"
#: Kind of secret → what those of a well-known service look like.
SHAPES = {
    "Hugging Face token": r"hf_\w{20,}",
    "GitHub token": r"gh[pousr]_\w{20,}|github_pat_\w{20,}",
    "GitLab token": r"gl(?:pat|dt|rt)-[\w\-]{16,}",
    "Slack token": r"xox[abeoprs]-[\w\-]{10,}|xapp-[\w\-]{10,}",
    "Slack address": r"(?<=hooks\.slack\.com/services/)[\w/]+",
    "API key": r"sk-[\w\-]{20,}|AIza[\w\-]{30,}|ya29\.[\w\-]{20,}|GOCSPX-[\w\-]{20,}",
    "Stripe key": r"[sr]k_(?:live|test)_\w{16,}|whsec_\w{20,}",
    "AWS key": r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}",
    "npm token": r"npm_\w{30,}",
    "PyPI token": r"pypi-[\w\-]{20,}",
    "SendGrid key": r"SG\.[\w\-]{16,}\.[\w\-]{16,}",
    "DigitalOcean token": r"do[opr]_v1_\w{30,}",
    "Shopify token": r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{20,}",
    "Groq key": r"gsk_\w{30,}",
    "NVIDIA key": r"nvapi-[\w\-]{30,}",
    "Replicate token": r"r8_\w{30,}",
    "Databricks token": r"dapi[0-9a-f]{32}",
    "Linear key": r"lin_api_\w{30,}",
    "Telegram token": r"\d{8,10}:AA[\w\-]{30,}",
    "JSON web token": r"eyJ[\w\-]{6,}\.[\w\-]{6,}\.[\w\-]*",
}
_KNOWN = re.compile(
    EDGE + "(?:" + "|".join(f"(?P<k{n}>{shape})" for n, shape in enumerate(SHAPES.values())) + ")",
    re.ASCII,
)
_KINDS = tuple(SHAPES)
_GONE = f"\n{MASK}\n"
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY( BLOCK)?-----(?P<body>.{0,20000}?)"
    r"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY|\Z)",
    re.DOTALL,
)
_HEADER = re.compile(
    r"(?i:(?P<kind>(?:proxy-)?authorization|(?:set-)?cookie2?))[\"']?\s*[:=]\s*\\?[\"']?"
    r"(?:(?i:bearer|basic|token|digest|negotiate|apikey)\s+)?(?P<value>[^\s\"'\\<>(){}\[\]][^\r\n\"'\\<>]*)"
)
#: What torch calls an entry of its caches.
_CACHE_KEY = re.compile(r"[a-z][a-z2-7]{51}")
#: A word next to a name of a secret, with no sign of an assignment: ``the token is abc…``, in the
#: next cell of a table, the other half of a pair, or an element of XML.
_NEXT_TO = re.compile(
    r"(?i:token|secret|password|passwd|credential|api[_ -]?key|access[_ -]?key)s?"
    r"(?:\s+(?:is|was|of))?(?:[\s\"'`<>(,|:=\\-]|[^\x00-\x7f]|\\u[0-9a-f]{4}){1,60}(?P<value>[A-Za-z0-9+/_\-=]{12,200})"
)
#: As curl takes a user and a password; numbers are a user and a group of docker's.
_USER_OPTION = re.compile(
    r"(?<![^\s\"'])(?:-u|--user|--proxy-user)[\s=]\s*\\*[\"']?[^:/\s\"']+:(?P<value>(?!\d+\b)[^\s\"'\\]+)"
)
#: Names that make a secret of any literal value; what others have must look random.
STRONG_NAMES = _ALWAYS - {"signature"}
STRONG_KEYS = frozenset(("api", "secret", "access", "private", "auth", "account", "encryption"))
WEAK_NAMES = _LAST | _PLURALS | {"signature"}
_CODE = re.compile(
    r"(?i:none|null|true|false|str|int|float|bool|bytes|any|optional|string|self|args|masked"
    r"|required|default|redacted|getpass|yes|no|on|off|bearer|basic|token|digest|\d{1,5})"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[.*?<>$%\-_=+/\\]+|[$%]\w+|\$?\{.*|.*[/~]\.{0,2}"
)
_VARIABLE = ("TOKEN", "KEY", "SECRET", "PASSWORD")
_VARIABLE_ENDS = ("PASS", "PW")
#: As curl takes both; numbers are a user and a group of docker's.
_USER_OPTIONS = ("-u", "--user", "--proxy-user")
_USER_PASSWORD = re.compile(r"[^:/\s]+:(?!\d+\Z).+", re.DOTALL)


def is_secret(name: str) -> bool:
    """Whether an option, a key or a parameter is called as secrets are: ``--db.password``."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if any(part in _ALWAYS or part.endswith(_ALWAYS_ENDS) for part in parts):
        return True
    last, before = parts[-1:], parts[-2:-1]
    if not _PLURALS.isdisjoint(last):
        return not _OF_SECRETS.isdisjoint(before)
    return not _LAST.isdisjoint(last) and _HARMLESS.isdisjoint(before)


def masked(text: str) -> str:
    """``text`` with a mask in place of each password, token and key in it."""
    text = masked_message(text)
    for pattern in (_ASSIGNED, _OPTION):
        text = _without_values(pattern, text, is_secret)
    return text


def masked_message(text: str) -> str:
    """The same of prose, in which ``unexpected key: x`` is no secret: only what looks like one."""
    text = _URL_USER.sub(_without_user, text)
    text = _HEADER.sub(lambda found: found[0].removesuffix(found["value"]) + MASK, text)
    text = _BEARER.sub(lambda found: f"{found['scheme']} {MASK}", text)
    text = _PRIVATE_KEY.sub(
        lambda found: (
            found[0] if MASK in (body := found["body"]) else found[0].replace(body, _GONE)
        ),
        _KNOWN.sub(MASK, text),
    )
    text = _USER_AT_HOST.sub(lambda found: f"{found['user']}:{MASK}@", text)
    for pattern in (_IN_PROSE, _OPTION):
        # Only what is one in prose as well, where ``key=CPU`` is none.
        text = _without_values(
            pattern, text, lambda name: is_secret(name) and name.strip("-").lower() not in _LAST
        )
    return text


def masked_arguments(words: Iterable[str]) -> list[str]:
    """A command line's words, each masked; also the word after ``--password``."""
    found: list[str] = []
    secret_next = False
    for before, word in pairwise(("", *words)):
        option = re.fullmatch(rf"--?{_NAME}", word)
        if secret_next and not word.startswith("--"):
            found.append(MASK)
            secret_next = False
            continue
        if before in _USER_OPTIONS and _USER_PASSWORD.fullmatch(word):
            found.append(f"{word.partition(':')[0]}:{MASK}")
            continue
        whole = _WHOLE_WORD.fullmatch(word)
        if whole and is_secret(whole["name"]):
            found.append(f"{whole['name']}={MASK}")
            continue
        found.append(masked(word))
        secret_next = option is not None and is_secret(word)
    return found


def masked_variable(name: str, value: str) -> str:
    """The value of an environment variable."""
    upper = name.upper()
    named = any(word in upper for word in _VARIABLE) or upper.endswith(_VARIABLE_ENDS)
    if named or is_secret(name):
        return MASK
    return masked(value)


def secrets_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Begin, end and kind of every secret in ``text``; they may overlap.

    Stricter than ``masked``: a word is one by its shape, by a telling name with any literal value,
    or by a less telling one with a value that looks random.
    """
    for found in _KNOWN.finditer(text):
        yield *found.span(), _KINDS[int((found.lastgroup or "k0")[1:])]
    if "PRIVATE KEY" in text:
        for found in _PRIVATE_KEY.finditer(text):
            yield *found.span("body"), "private key"
    if "@" in text and ":" in text:
        for pattern, group in ((_URL_USER, "user"), (_USER_AT_HOST, "secret")):
            for found in pattern.finditer(text):
                if found[group] and MASK not in found[group]:
                    colon = found[group].find(":") + 1
                    if pattern is _URL_USER and not colon and "http" not in found["scheme"]:
                        continue
                    yield found.start(group) + colon, found.end(group), "URL credentials"
    for found in _BEARER.finditer(text):
        yield found.end("scheme") + 1, found.end(), "authorization header"
    for found in _HEADER.finditer(text):
        cookie = "cookie" in found["kind"].lower()
        if cookie and "=" not in found["value"]:
            continue
        yield *found.span("value"), "cookie" if cookie else "authorization header"
    for found in _USER_OPTION.finditer(text):
        yield *found.span("value"), "password"
    for found in _NEXT_TO.finditer(text):
        if looks_random(found["value"]):
            kind = "password" if "pass" in found[0].lower() else "key or token"
            yield *found.span("value"), kind
    for pattern in (_BEGUN, _OPTION):
        done = 0
        for begun in pattern.finditer(text):
            if begun.start() >= done and (value := _named(text, begun, pattern is _OPTION)):
                yield value
                done = value[1]


def _named(text: str, begun: re.Match[str], option: bool) -> tuple[int, int, str] | None:
    """The value of a name, if the two are a secret."""
    name = begun["name"]
    if text[begun.start() - 1 : begun.start()] == "\\" and name[0] in "nrtbf":
        name = name[1:]  # the first letter is an escaped newline's
    found = _FIRST_OF_VALUE.match(text, begun.end()) if is_secret(name) else None
    if found is None:
        return None
    begin, end = found.span()
    quoted = text[begin] in "\"'"
    if quoted:
        begin, end = begin + 1, end - 1
    while end > begin and text[end - 1] == "\\":
        end -= 1
    value = text[begin:end]
    if not value or value.startswith(("<", "[", "/", "-")) or MASK in value:
        return None
    parts = [part.lower() for part in _PARTS.findall(name)]
    strong = any(part in STRONG_NAMES or part.endswith(_ALWAYS_ENDS) for part in parts) or (
        parts[-1] in ("key", "keys") and not STRONG_KEYS.isdisjoint(parts[-2:-1])
    )
    is_code = _CODE.fullmatch(value) is not None
    if not quoted and not option:
        is_code = is_code or text[end : end + 1] in ("(", "[", "{")
    if ((strong or option) and not is_code) or looks_random(value):
        if not quoted:  # what is longer than a look at it
            end = _REST_OF_VALUE.match(text, end).end()  # type: ignore[union-attr] # of any text
        return begin, end, "password" if "pass" in name.lower() else "key or token"
    return None


def looks_random(word: str) -> bool:
    """Whether a word of 8 characters or more is more likely drawn than written by hand."""
    if (
        len(word) < 8
        or not word.isascii()
        or _CACHE_KEY.fullmatch(word)
        or any(c in word for c in " ()[]{}<>,;|&*")
    ):
        return False
    letters, digits = sum(map(str.isalpha, word)), sum(map(str.isdigit, word))
    if not letters or not digits or word.startswith(("/", "~", "$", "torch.", "buf", "primals")):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(word))
    bits = -sum(n / len(word) * log2(n / len(word)) for n in Counter(word).values())
    return changes >= (2 if len(word) >= 16 else 3) and bits >= (3.0 if len(word) >= 16 else 2.5)


def _without_user(found: re.Match[str]) -> str:
    user, colon, _ = found["user"].partition(":")
    if colon:
        return f"{found['scheme']}{user}:{MASK}@"
    is_token = found["scheme"].lower().startswith("http")
    return f"{found['scheme']}{MASK if is_token and user else user}@"


def _without_values(pattern: re.Pattern[str], text: str, secret: Callable[[str], bool]) -> str:
    """``text`` without the values of what is ``secret``; a value of others may hold such ones."""
    done, position = [], 0
    while found := pattern.search(text, position):
        end = found.end()
        done.append(text[position:end])
        position = end
        if secret(found["name"]) and (value := _VALUE.match(text, end)) and MASK not in value[0]:
            quote = value[0][0] if value[0][0] in "\"'" else ""
            done.append(f"{quote}{MASK}{quote}")
            position = value.end()
    return "".join((*done, text[position:]))
