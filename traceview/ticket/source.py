"""The user's own source in a ticket: its strings go, in a strict one its names and lines, too."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from traceview.ticket.private import HARMLESS_STRINGS, is_harmless
from traceview.ticket.redaction import Redaction, latin

_OPTION = re.compile(r"-{1,2}[A-Za-z][\w\-]*|__\w+__")
_KEY = re.compile(r"[A-Za-z_][\w.]{0,60}")
_QUOTED = re.compile(r"(?P<mark>[\"'])(?P<text>(?:(?!(?P=mark))[^\\\n]|\\.)*)(?P=mark)")
_WORDS = re.compile(r"[^\\\n\r\t{}\"']{4,}")
#: Names of torch, Python and everyone: they stay in a strict ticket.
_NOT_PRIVATE = frozenset(
    (
        *dir(builtins),
        *keyword.kwlist,
        *HARMLESS_STRINGS,
        *(
            "main",
            "model",
            "module",
            "optimizer",
            "scheduler",
            "loader",
            "dataset",
            "update",
            "call",
        ),
        *("apply", "build", "init", "setup", "run", "test", "compile", "compiled", "layer", "norm"),
        *("attention", "block", "embedding", "reset", "save", "load", "config", "args", "kwargs"),
        *("self", "cls", "torch", "numpy", "time", "data", "name", "file", "line", "function"),
        *("stack", "rows", "calls", "phase", "detail", "stance", "value", "section", "event"),
        *("region", "process", "setting", "source", "error", "message", "type", "end", "note"),
        *("done", "block", "target", "kind", "text", "guard", "frame", "graph"),
    )
)
#: Folders that everyone has, torch too.
_FOLDERS = frozenset(
    (
        *("src", "lib", "libs", "util", "utils", "models", "modules", "layers", "core", "common"),
        *("train", "training", "scripts", "tests", "examples", "tools", "python", "app", "ops"),
    )
)
_LEAST_LINE = 12
#: What takes the name of an attribute; calls and arguments of theirs that take words of torch's.
_BY_NAME = ("getattr", "setattr", "hasattr", "delattr")
_CALLS, _ARGUMENTS = ("compile", "disable"), ("backend", "mode")
_SETTING = re.compile(r"torch\.(?:\w+\.)*_?config\.")
_NAME = re.compile(r"\w{1,60}")


def without_strings(source: str, redaction: Redaction) -> str:
    """Python with ``[masked string N]`` in place of its own strings; torch's words stay.

    The strings are then taken out of all other texts, too.
    """
    try:
        found = list(_strings(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return _QUOTED.sub(lambda match: _without(match, redaction), source)
    data = source.encode("utf-8", "surrogateescape")
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    done, parts = 0, []
    places = (
        (
            starts[node.lineno - 1] + node.col_offset,
            starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0),
            node,
        )
        for node in found
    )
    for first, last, node in sorted(places, key=lambda place: place[:2]):
        if first < done:
            continue
        old = data[first:last].decode("utf-8", "surrogateescape")
        new = old
        if isinstance(node, ast.Constant):
            value = str(node.value)
            new = f'"{redaction.constant(latin(value))}"'
            for each in value.splitlines() if "\n" in value else ():
                if len(each.strip()) >= _LEAST_LINE:
                    redaction.constant(latin(each.strip()))
        else:
            texts = (str(part.value) for part in node.values if isinstance(part, ast.Constant))
            for words in (found.strip() for text in texts for found in _WORDS.findall(text)):
                if _is_private(words):
                    new = new.replace(words, redaction.constant(latin(words)))
        parts += [data[done:first].decode("utf-8", "surrogateescape"), new]
        done = last
    return "".join((*parts, data[done:].decode("utf-8", "surrogateescape")))


def hide_source(name: str, source: str, redaction: Redaction, inside: str = "") -> None:
    """Take the lines of a file of the user's out of all texts, and the names that it defines.

    ``inside``: its path in the project, of which the folders and the module's name go, too.
    """
    stem = PurePosixPath(name).stem.partition("-")[2] or PurePosixPath(name).stem
    names = [("file", stem)]
    try:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.append(("function", node.name))
            elif isinstance(node, ast.ClassDef):
                names.append(("class", node.name))
    except (SyntaxError, ValueError, RecursionError):
        pass
    for what, each in names:
        if _is_name_of_theirs(each):
            instead = _placeholder(what, each, redaction)
            redaction.add(latin(each), "name", instead)
            if what == "function":  # as Dynamo calls what follows a graph break in it
                after = "torch_dynamo_resume_in_{}_at_"
                value = latin(after.format(each))
                redaction.add(value, "name", after.format(instead), bounded=False)
    # The folders of the module, as paths and as dotted names have them.
    parts = [*PurePosixPath(inside).parts[:-1], stem]
    hidden = [
        _placeholder("file" if part is parts[-1] else "module", part, redaction)
        if _is_name_of_theirs(part) and part.lower() not in _FOLDERS
        else part
        for part in parts
    ]
    for end in range(1, len(parts) + 1):
        if hidden[end - 1] != parts[end - 1]:
            marks = ("/", ".") if end > 1 else ("",)
            for mark in marks:
                redaction.add(latin(mark.join(parts[:end])), "name", mark.join(hidden[:end]))
            # Dynamo's global for the module.
            imported, shown = ("_dot_".join(each[:end]) for each in (parts, hidden))
            redaction.add(latin(f"__import_{imported}"), "name", f"__import_{shown}")
    for line in map(str.strip, source.splitlines()):
        if len(line) >= _LEAST_LINE and not line.startswith(("import torch", "from torch")):
            redaction.add(latin(line), "source line")


def _is_name_of_theirs(name: str) -> bool:
    private = len(name) >= 3 and name.lower() not in _NOT_PRIVATE and not name.startswith("__")
    return private and re.fullmatch(r"[\w.\-]+", name) is not None


def _placeholder(what: str, name: str, redaction: Redaction) -> str:
    """``user_file_2``: the same wherever the name is."""
    return f"user_{what}_{redaction.numbered(what, name).rpartition(' ')[2][:-1]}"


def _strings(tree: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """String constants and f-strings that are no key or option, no name and no word of torch's."""
    keys: set[int] = set()
    # What names an attribute, a setting of torch's or a backend: a script needs it to run.
    naming: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            keys.add(id(node.slice))
        elif isinstance(node, ast.Dict):
            keys.update(map(id, node.keys))
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in _BY_NAME:
                naming += node.args[1:2]
            if called.endswith(_CALLS):
                naming += [word.value for word in node.keywords if word.arg in _ARGUMENTS]
        elif isinstance(node, ast.Assign) and any(
            _SETTING.match(ast.unparse(target)) for target in node.targets
        ):
            naming.append(node.value)
    names = {id(part) for node in naming for part in ast.walk(node)}
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in inside or (id(node) in names and _is_name(node)):
            continue
        if isinstance(node, ast.JoinedStr):
            yield node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_key = id(node) in keys and _KEY.fullmatch(node.value)
            if not is_key and _is_private(node.value):
                yield node


def _is_name(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
        return all(_NAME.fullmatch(str(part)) for part in parts)
    return isinstance(node, ast.Constant) and _NAME.fullmatch(str(node.value)) is not None


def _is_private(text: str) -> bool:
    return (
        len(text) > 2
        and not is_harmless(text)
        and re.search(r"[^\W\d_]", text) is not None
        and _OPTION.fullmatch(text) is None
    )


def _without(match: re.Match[str], redaction: Redaction) -> str:
    if not _is_private(match["text"]):
        return match[0]
    return f"{match['mark']}{redaction.constant(latin(match['text']))}{match['mark']}"
