"""Source text to HTML, a line at a time, with classes instead of colours."""

from __future__ import annotations

from functools import cache, lru_cache

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import BashLexer, CppLexer, DiffLexer, PythonLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, _TokenType

from traceview.words.text import clean

# token type: class in report.css. What is not here stays plain, which keeps the file small.
_CLASSES = (
    (Comment.Preproc, "p"),
    (Comment, "c"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
    (Name.Builtin, "b"),
    (String, "s"),
    (Number, "n"),
    (Generic.Inserted, "gi"),
    (Generic.Deleted, "gd"),
    (Generic.Heading, "c"),
    (Generic.Subheading, "c"),
)


def language_of(text: str) -> str:
    """``cpp`` for what Inductor writes for a CPU, else ``python`` (Triton is Python)."""
    head = text[:4000]
    return "cpp" if "#include" in head or 'extern "C"' in head else "python"


@lru_cache(256)  # findings of one rule say the same
def highlight(text: str, language: str) -> tuple[Markup, ...]:
    """One piece of HTML for every line of ``text``; languages: python, cpp, diff, shell."""
    pieces = []
    for token, value in _lexer(language).get_tokens(clean(text)):
        name, lines = _class(token), str(escape(value)).split("\n")
        if name:
            lines = [f'<span class="{name}">{x}</span>' if x.strip() else x for x in lines]
        pieces.append("\n".join(lines))
    return tuple(map(Markup, "".join(pieces).split("\n")[:-1]))  # a lexer adds a newline


def plain(text: str) -> tuple[Markup, ...]:
    """As ``highlight`` with no classes: cheap, for text beyond the budget."""
    return tuple(map(escape, clean(text).split("\n")))


@cache
def _lexer(language: str) -> Lexer:
    lexers = {"cpp": CppLexer, "diff": DiffLexer, "shell": BashLexer}
    return lexers.get(language, PythonLexer)(stripnl=False)


@cache
def _class(token: _TokenType) -> str | None:
    return next((name for kind, name in _CLASSES if token in kind), None)
