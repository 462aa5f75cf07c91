"""What a user reads is plain English: the tics listed in docs/style.md stay out of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TICS = re.compile(
    r"(?<!`)\b(?:told|tells|dear(?:er|est|ly)?|nought|anew|mend(?:s|ed|ing)?|cure[sd]?|in vain"
    r"|thrice"
    r"|so many|as a rule|lends?|one by one|by turns|nobody|somebody|beside|for want of"
    r"|(?:is|are|was|were) said|st(?:and|ands|ood) (?:still|beside)|cuts? (?:\w+ )+in two)\b",
    re.IGNORECASE,
)
#: The page that lists them.
STYLE = ROOT / "docs" / "style.md"
PAGES = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "benchmarks" / "README.md",
        *(ROOT / "evaluation").rglob("README.md"),
        *(ROOT / "reports").rglob("*.j2"),
    )
    if path != STYLE
)
MODULES = sorted(
    path
    for folder in ("traceview", "collectors", "reports")
    for path in (ROOT / folder).rglob("*.py")
    if "demos" not in path.parts
)


def _name(path):
    return str(path.relative_to(ROOT))


def _tics(text, first_line=1):
    return [
        f"line {first_line + text.count(chr(10), 0, match.start())}: {match.group()}"
        for match in TICS.finditer(text)
    ]


def test_pages_and_templates():
    found = {_name(path): _tics(path.read_text(encoding="utf-8")) for path in PAGES}
    assert {name: tics for name, tics in found.items() if tics} == {}


def test_every_string_of_the_library():
    """Messages, help and docstrings: a rule's docstring is its page."""
    found = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                tics = _tics(node.value, node.lineno)
                if tics:
                    found.setdefault(_name(path), []).extend(tics)
    assert found == {}


def test_the_list_of_tics_is_in_the_style_guide():
    text = STYLE.read_text(encoding="utf-8")
    for word in ("told", "dear", "nought", "anew", "mend", "cure", "in vain", "so many", "lends"):
        assert word in text
