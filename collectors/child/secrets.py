"""What looks like a secret in arguments, variables and messages is masked before it is written.

The parent imports this module, too: the run folder and the events have the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "<masked>"
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+")
#: Parts of a name that make it one of a secret wherever they stand.
_ALWAYS = frozenset(
    (
        *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "apikey"),
        *("credential", "credentials", "creds", "signature", "authorization", "authtoken", "dsn"),
    )
)
#: The same at its end, unless one of ``_HARMLESS`` is before it: ``pad_token``, ``--sort-key``.
_LAST = frozenset(("token", "key", "auth", "pass", "sig", "pat", "cookie", "bearer"))
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
_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s,;&'\"(){}\[\]]+"
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![\w./\-])-{{0,2}}{_NAME})(?P<between>[\"']?\s*(?:=|:(?!//))\s*)(?P<value>{_VALUE})"
)
_OPTION = re.compile(rf"(?P<name>(?<!\S)--?{_NAME})(?P<between>\s+)(?P<value>{_VALUE})")
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
    r"|sk-[\w\-]{20,}|AKIA[0-9A-Z]{16}|AIza[\w\-]{30,}|eyJ[\w\-]{6,}\.[\w\-]{6,}\.[\w\-]*)"
)
_VARIABLE = ("TOKEN", "KEY", "SECRET", "PASSWORD")


def is_secret(name: str) -> bool:
    """Whether an option, a key or a parameter is called as secrets are: ``--db.password``."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if any(part in _ALWAYS for part in parts):
        return True
    harmless = len(parts) > 1 and parts[-2] in _HARMLESS
    return bool(parts) and parts[-1] in _LAST and not harmless


def masked(text: str) -> str:
    """``text`` with a mask in place of each password, token and key in it."""
    text = masked_message(text)
    for pattern in (_ASSIGNED, _OPTION):
        text = pattern.sub(_without_value, text)
    return text


def masked_message(text: str) -> str:
    """The same of prose, in which ``unexpected key: x`` is no secret: only what looks like one."""
    text = _URL_USER.sub(_without_user, text)
    text = _BEARER.sub(lambda found: f"{found['scheme']} {MASK}", text)
    text = _KNOWN.sub(MASK, text)
    return _USER_AT_HOST.sub(lambda found: f"{found['user']}:{MASK}@", text)


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


def _without_value(found: re.Match[str]) -> str:
    if not is_secret(found["name"]) or MASK in found["value"]:
        return found[0]
    value = found["value"]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{found['name']}{found['between']}{quote}{MASK}{quote}"
