"""Table ``backward_calls``: where the user's sources ask for gradients, read with ``ast``.

A script that was stopped early may not have come there yet: what did not run proves nothing
about the rest of it. An optimizer asks for them too, in whatever file its backward stands.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import polars as pl

from traceview.derive.syntax import syntax_tree
from traceview.tables import Tables, from_rows

#: Methods that run a backward, of tensors or of what trains for the user.
_METHODS = frozenset({"backward", "manual_backward", "fit"})
#: Functions that compute gradients, in torch.autograd, its ``functional``, and torch.func.
_FUNCTIONS = frozenset(
    {"grad", "grad_and_value", "vjp", "jacobian", "jacrev", "jacfwd", "hessian", "hvp", "vhp"}
)
_MODULES = ("autograd", "functional", "func", "functorch")
_CLASSES = frozenset({"Trainer", "SFTTrainer", "Seq2SeqTrainer"})


def backward_calls(tables: Tables, read_source: Callable[[str], str | None]) -> pl.DataFrame:
    """Table ``backward_calls``; ``read_source`` gives a file's text, None without a copy."""
    rows = (
        {"pass": source["pass"], "rank": source["rank"], "file": source["file"],
         "line": line, "call": call}
        for source in tables["sources"].iter_rows(named=True)
        for line, call in calls(read_source(source["file"]) or "")
    )  # fmt: skip
    return from_rows("backward_calls", rows)


def calls(source: str) -> Iterator[tuple[int, str]]:
    """(line, name as written) of every call that asks for gradients, and of torch.optim."""
    tree = syntax_tree(source)
    if tree is None:
        return
    imported = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _asks(node.func, imported)):
            yield node.lineno, name
        elif isinstance(node, ast.expr | ast.stmt) and _names_optimizers(node):
            yield node.lineno, "torch.optim"


def _imported(tree: ast.Module) -> frozenset[str]:
    """Local names of functions that a module of gradients gives."""
    return frozenset(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] in _MODULES
        for alias in node.names
        if alias.name in _FUNCTIONS
    )


def _asks(function: ast.expr, imported: frozenset[str]) -> str | None:
    if isinstance(function, ast.Name):
        return function.id if function.id in imported | _CLASSES else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = function.value
    last = getattr(owner, "attr", None) or getattr(owner, "id", None)
    gradients = function.attr in _FUNCTIONS and last in _MODULES
    return function.attr if function.attr in _METHODS | _CLASSES or gradients else None


def _names_optimizers(node: ast.expr | ast.stmt) -> bool:
    """``torch.optim`` in code or in an import: what has an optimizer is going to train."""
    if isinstance(node, ast.Attribute):
        return node.attr == "optim" and getattr(node.value, "id", None) == "torch"
    if isinstance(node, ast.Import):
        return any(alias.name.startswith("torch.optim") for alias in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    from_torch = node.module == "torch" and any(alias.name == "optim" for alias in node.names)
    return from_torch or (node.module or "").startswith("torch.optim")
