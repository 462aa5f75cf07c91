"""Bundled scripts, each written as a user would write it: ``traceview demo NAME``."""

from __future__ import annotations

import ast
from pathlib import Path

DEFAULT = "pointwise"
_NAMES = ("pointwise", "matmul", "transformer", "mlp", "graph-break", "recompile")


def demos() -> dict[str, str]:
    """Name → first sentence of the script's docstring."""
    sources = {name: script_of(name).read_text(encoding="utf-8") for name in _NAMES}
    docs = {name: ast.get_docstring(ast.parse(source)) for name, source in sources.items()}
    return {name: (doc or "").partition("\n")[0] for name, doc in docs.items()}


def script_of(name: str) -> Path:
    """The script called ``name``; UsageError if there is none."""
    from traceview.errors import UsageError

    if name not in _NAMES:
        fact = f"There is no demo called {name}."
        raise UsageError(fact, f"Demos are {', '.join(_NAMES)}.", slug="no-such-demo")
    return Path(__file__).with_name(f"{name.replace('-', '_')}.py")
