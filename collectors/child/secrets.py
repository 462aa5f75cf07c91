"""What looks like a secret in arguments, variables and messages is masked before it is written.

The parent imports this module, too: the run folder and the events have the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

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
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s,;&'\"(){}\[\]]+")
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![\w./\-])-{{0,2}}{_NAME})(?P<between>[\"']?\s*(?:=|:(?!//))\s*)"
)
_OPTION = re.compile(rf"(?P<name>(?<![^\s'\"])--?{_NAME})(?P<between>\s+|['\"],\s*(?=['\"]))")
_WHOLE_WORD = re.compile(rf"(?P<name>[+-]{{0,2}}{_NAME})=.+", re.DOTALL)
#: In prose only what is assigned without a space, or behind a quoted key.
_IN_PROSE = re.compile(rf"(?P<name>(?<![\w./\-])-{{0,2}}{_NAME})(?P<between>=|[\"']\s*:\s*)")
#: ``scheme://user:password@`` and ``https://token@``: up to the last @ of the authority.
_URL_USER = re.compile(r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]*://)(?P<user>[^\s/?#'\"]*)@")
#: A proxy without a scheme, as curl takes it.
_USER_AT_HOST = re.compile(
    r"(?<![\w/:@.\-])(?P<user>[\w.+\-]{1,100}):(?P<secret>[^\s:@/'\"]+)@(?=\w)"
)
_BEARER = re.compile(r"\b(?P<scheme>Bearer|Basic)\s+[\w.~+/=\-]{8,}", re.IGNORECASE)
#: What the tokens of well-known services begin with.
_KNOWN = re.compile(
    r"\b(?:hf_\w{20,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,}|xox[abprs]-[\w\-]{10,}"
    r"|sk-[\w\-]{20,}|A[KS]IA[0-9A-Z]{16}|AIza[\w\-]{30,}|eyJ[\w\-]{6,}\.[\w\-]{6,}\.[\w\-]*"
    r"|npm_\w{30,}|pypi-[\w\-]{30,}|gsk_\w{30,}|nvapi-[\w\-]{30,}|r8_\w{30,}|dop_v1_\w{30,}"
    r"|dapi[0-9a-f]{32}|ya29\.[\w\-]{20,}|SG\.[\w\-]{16,}\.[\w\-]{16,}|[sr]k_live_\w{16,}"
    r"|lin_api_\w{30,})|(?<=hooks\.slack\.com/services/)[\w/]+"
    r"|(?<=PRIVATE KEY-----)[\w\s+/=]+(?=-----END)"
)
_VARIABLE = ("TOKEN", "KEY", "SECRET", "PASSWORD")


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
    text = _BEARER.sub(lambda found: f"{found['scheme']} {MASK}", text)
    text = _KNOWN.sub(MASK, text)
    text = _USER_AT_HOST.sub(lambda found: f"{found['user']}:{MASK}@", text)
    for pattern in (_IN_PROSE, _OPTION):
        text = _without_values(pattern, text, _is_surely_secret)
    return text


def masked_arguments(words: Iterable[str]) -> list[str]:
    """A command line's words, each masked; also the word after ``--password``."""
    found: list[str] = []
    secret_next = False
    for word in words:
        option = re.fullmatch(rf"--?{_NAME}", word)
        if secret_next and not word.startswith("--"):
            found.append(MASK)
            secret_next = False
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
    if any(word in name.upper() for word in _VARIABLE) or is_secret(name):
        return MASK
    return masked(value)


def _without_user(found: re.Match[str]) -> str:
    user, colon, _ = found["user"].partition(":")
    if colon:
        return f"{found['scheme']}{user}:{MASK}@"
    is_token = found["scheme"].lower().startswith("http")
    return f"{found['scheme']}{MASK if is_token and user else user}@"


def _is_surely_secret(name: str) -> bool:
    """Whether it is one in prose as well, where ``key=CPU`` is none."""
    return is_secret(name) and name.strip("-").lower() not in _LAST


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
