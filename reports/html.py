"""report.html: one self-contained page. No network, no script needed, not too long."""

from __future__ import annotations

import base64
import hashlib
import os
import pickle
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup, escape
from msgspec.structs import replace

from traceview import limits
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.reports import colours, phrases, pictures, view, words
from traceview.reports.job import pictures as job_pictures
from traceview.reports.job import words as jobs
from traceview.reports.view import Limits, View
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import clean, one_line

# A template and its styles.
_REPORT = ("report.html.j2", ("report.css", "pictures.css"))
_POSTMORTEM = ("job.html.j2", ("report.css", "pictures.css", "job.css"))
#: Characters of highlighted code on a post-mortem's page, where code comes last: they are slow.
_JOB_COLOURED = 20_000
# Tried in turn until the page fits: what goes first is what the run folder holds anyway.
_LEVELS = (
    Limits(text=6000, rows=400, code=600_000, coloured=200_000, one_code=60_000),
    Limits(text=2000, rows=120, code=200_000, coloured=100_000, one_code=20_000),
    Limits(text=600, rows=40, code=80_000, coloured=80_000, one_code=8_000),
    Limits(text=160, rows=15, code=20_000, coloured=20_000, one_code=2_000),
)
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
# A figure and its unit stay on one line.
_UNIT = re.compile(r"(?<=\d) (?=(?:ms|µs|s|%|[KMGT]iB)(?!\w))")


def render(diagnosis: Diagnosis, tried: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """The whole page. Where it would pass ``limits.page`` it is rendered again with less detail.

    ``tried``: rule → sentences on what came of the remedies that its findings offer.
    """
    name, styles = _REPORT if diagnosis.job is None else _POSTMORTEM
    script = asset("report.js")
    # The Content-Security-Policy knows our one script by its hash.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = Markup("".join(map(asset, styles)))
    page = ""
    for detail in _LEVELS:
        if diagnosis.job is not None:
            detail = replace(detail, coloured=min(detail.coloured, _JOB_COLOURED))
        page = (
            _environment(detail.text)
            .get_template(name)
            .render(
                d=diagnosis,
                view=View(diagnosis, detail),
                tried=tried,
                style=style,
                script=Markup(script),
                script_hash=f"sha256-{digest}",
            )
        )
        if len(page.encode()) <= limits.now.page:
            break
    return page


@cache
def _environment(most_text: int) -> jinja2.Environment:
    """Kept between pages: compiling the templates takes as long as filling them."""
    modules = {"words": words, "phrases": phrases, "view_of": view, "colours": colours}
    pictured = {"pictures": pictures, "job_pictures": job_pictures, "jobs": jobs}
    helpers = {"everyone": everyone}
    return environment("traceview.reports", most_text, {**modules, **pictured, **helpers})


def environment(package: str, most_text: int, known: Mapping[str, Any]) -> jinja2.Environment:
    """The templates of ``package``, which know ``known`` besides numbers and names.

    Every printed value is cleaned of control characters and cut to ``most_text`` characters.
    """

    def shown(value: object) -> object:
        if value is None:
            return fmt.MISSING
        if isinstance(value, str) and not isinstance(value, Markup):
            return clean(value, most_text)
        return value

    made = templates(package, shown)
    made.globals.update(known)
    made.filters["prose"] = lambda text: Markup("").join(
        Markup("<p>{}</p>").format(_inline(part))
        for part in re.split(r"\n\s*\n", clean(text, most_text).strip())
    )
    made.filters["inline"] = lambda text: _inline(clean(text, most_text))
    # A path or a kernel's name may wrap after / and _.
    made.filters["path"] = lambda text: Markup("<wbr>").join(re.split(r"(?<=[/_])(?=[^/_])", text))
    made.filters["short"] = lambda text, limit=120: one_line(str(text), limit)
    return made


def templates(
    package: str, finalize: Callable[[object], object], keep_trailing_newline: bool = False
) -> jinja2.Environment:
    """The templates of ``package``, which know numbers and names and print what ``finalize`` gives.

    Autoescape on, undefined names are errors.
    """
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        bytecode_cache=_Cache.of_user(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=keep_trailing_newline,
    )
    made.globals.update(fmt=fmt, names=names)
    made.filters["capfirst"] = lambda text: text[:1].upper() + text[1:]
    return made


def asset(name: str, package: str = "traceview.reports") -> str:
    """The text of a style sheet or script among the templates of ``package``."""
    return (files(package) / "templates" / name).read_text(encoding="utf-8")


class _Cache(jinja2.FileSystemBytecodeCache):
    """A cache in which a full disk or half a file only costs the time to compile again."""

    @classmethod
    def of_user(cls) -> _Cache | None:
        """The one in the user's cache folder; None where nothing can be written there."""
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        folder = home / "traceview" / "templates"
        try:
            if not home.is_absolute():
                return None
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return None
        made_by = f"{sys.implementation.cache_tag}-jinja2-{jinja2.__version__}"
        return cls(str(folder), f"%s.{made_by}.cache") if os.access(folder, os.W_OK) else None

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, EOFError, ValueError, pickle.UnpicklingError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def _inline(text: str) -> Markup:
    """Text in one paragraph, with what stands in backticks as code."""
    parts = _INLINE_CODE.split(_UNIT.sub("\u00a0", text))
    coded = (
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )
    return Markup("").join(coded)
