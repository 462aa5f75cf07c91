"""The rules to check: ``[tool.traceview]`` of pyproject.toml, overridden by the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceview.errors import UsageError

if TYPE_CHECKING:
    from traceview.rules.choice import Asked, Choice

FILE = "pyproject.toml"
_KEYS = ("select", "ignore", "rules", "check")


def choice_of(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Choice:
    """The rules in effect here; UsageError for a file or name that can't be understood."""
    from traceview.rules.choice import Asked, choose
    from traceview.rules.plugins import installed

    found = asked_by_file(Path.cwd())
    options = Asked(_words(select), _words(ignore), where="the command line")
    return choose(installed(), *([found] if found else []), options)


def asked_by_file(folder: Path) -> Asked | None:
    """The settings of the nearest pyproject.toml with a [tool.traceview], from ``folder`` up."""
    from traceview.rules.choice import Asked

    found = _nearest(folder)
    if found is None:
        return None
    table, where = found[0], str(found[1])
    if not isinstance(table, dict):
        remedy = "Write [tool.traceview] above its keys"
        raise _wrong("tool.traceview must be a table", remedy, where)
    for key in table:
        if key not in _KEYS:
            near = get_close_matches(str(key), _KEYS, 1)
            remedy = f"Did you mean {near[0]}?" if near else f"Keys are {', '.join(_KEYS)}."
            fact = f"[tool.traceview] has no key called {key} ({where})."
            raise UsageError(fact, remedy, slug="no-such-key")
    words = {key: table.get(key, []) for key in ("select", "ignore")}
    for key, given in words.items():
        if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
            raise _wrong(f"{key} must be a list of names", f'Write {key} = ["gb-item"]', where)
    settings = table.get("rules", {})
    if not isinstance(settings, dict) or not all(isinstance(t, dict) for t in settings.values()):
        remedy = "Write [tool.traceview.rules.gb-item] above the settings of gb-item"
        raise _wrong("tool.traceview.rules must contain one table per rule", remedy, where)
    return Asked(_words(words["select"]), _words(words["ignore"]), settings, where)


def check_of_file(folder: Path) -> tuple[dict[str, Any], str, Path]:
    """Its [tool.traceview.check] (empty if there is none), the file's name, and its folder."""
    found = _nearest(folder)
    table, path = found if found else ({}, folder / FILE)
    check = table.get("check", {}) if isinstance(table, dict) else {}
    if not isinstance(check, dict):
        remedy = "Write [tool.traceview.check] above the limits"
        raise _wrong("tool.traceview.check must be a table", remedy, str(path))
    return dict(check), str(path), path.parent


def _nearest(folder: Path) -> tuple[Any, Path] | None:
    """The ``tool.traceview`` of the nearest pyproject.toml that has one, and that file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    for parent in (folder, *folder.parents):
        path = parent / FILE
        if not path.is_file():
            continue
        try:
            tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
        except (OSError, ValueError, RecursionError) as error:
            fact = f"{path} can't be read ({getattr(error, 'strerror', None) or error})."
            remedy = "Fix the file: it may contain settings of traceview."
            raise UsageError(fact, remedy, slug="toml") from error
        table = tool.get("traceview") if isinstance(tool, dict) else None
        if table is not None:
            return table, path
    return None


def _wrong(fact: str, remedy: str, where: str) -> UsageError:
    return UsageError(f"{fact} ({where}).", f"{remedy}.", slug="wrong-key")


def _words(given: Iterable[str]) -> tuple[str, ...]:
    """Single names: an option may be repeated, and may hold several, comma-separated."""
    return tuple(word.strip() for text in given for word in text.split(",") if word.strip())
