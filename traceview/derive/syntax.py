"""The syntax tree of a user's source; nothing of it is run or imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from functools import lru_cache

#: The text of one of the user's files by its name in table ``sources``; None without a copy.
ReadSource = Callable[[str], str | None]
#: Longer sources were generated.
MOST_CHARACTERS = 1_000_000
#: Trees that stay in memory: several questions are asked about one file after another.
FEW = 4

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=FEW)
def syntax_tree(source: str) -> ast.Module | None:
    """The tree, or None for what is too long or is no Python of this version.

    Every caller gets the same one, which must not be changed.
    """
    if len(source) > MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the script showed them when it ran
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def covers(node: ast.expr | ast.stmt, line: int) -> bool:
    """Whether ``line`` is one of those that ``node`` is written on."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def last_name(node: ast.AST) -> str:
    """``advance`` of ``model.advance``; empty for anything else."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def only_statement(line: str) -> ast.stmt | None:
    """The statement that ``line`` is; None where it is several, or a part of one."""
    tree = syntax_tree(line)
    return tree.body[0] if tree and len(tree.body) == 1 else None


def functions_around(tree: ast.Module, line: int) -> list[Function]:
    """The functions that ``line`` stands in, their heads included, in no order."""
    functions = (node for node in ast.walk(tree) if isinstance(node, Function))
    return [node for node in functions if covers(node, line)]


@lru_cache(maxsize=FEW)
def loops_around(tree: ast.Module, line: int) -> int:
    """Loops of the same function that run ``line`` again and again; comprehensions count."""
    around = functions_around(tree, line)
    scope: ast.AST = max(around, key=lambda node: node.lineno) if around else tree
    return sum(
        node.body[0].lineno <= line <= (node.end_lineno or line)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While)
        else isinstance(node, _COMPREHENSIONS) and covers(node, line)
        for node in ast.walk(scope)
    )


def function_at(tree: ast.Module, line: int) -> str | None:
    """The innermost of those by its name; None outside of all."""
    around = functions_around(tree, line)
    return max(around, key=lambda node: node.lineno).name if around else None
