"""Bundled scripts, each as a user would have written it: ``traceview demo NAME``."""

from __future__ import annotations

import ast
from pathlib import Path

DEFAULT = "pointwise"
_NAMES = ("pointwise", "matmul", "transformer", "mlp", "graph-break", "recompile")


def demos() -> dict[str, str]:
    """Name → first sentence of the script's docstring."""
    return {name: _summary(script_of(name)) for name in _NAMES}


def script_of(name: str) -> Path:
    """The script called ``name``; UsageError where there is none."""
    from traceview.errors import UsageError

    if name not in _NAMES:
        fact = f"There is no demo called {name}."
        raise UsageError(fact, f"The demos are: {', '.join(_NAMES)}.", slug="no-such-demo")
    return Path(__file__).with_name(f"{name.replace('-', '_')}.py")


def _summary(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0]
