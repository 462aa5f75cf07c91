"""A unified diff of one file, applied: to a text, and to functions that are loaded already."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FunctionType, ModuleType

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
#: What these methods have made stays as it is.
_MAKERS = ("__init__", "__new__", "__post_init__")
_WRAPPED = (staticmethod, classmethod)
_NO_NEWLINE = "\\ No newline at end of file"

#: A function, its code, and what its code is with the patch.
Changed = tuple[FunctionType, CodeType, CodeType]


class NotPatched(Exception):
    """Why a patch can't be applied."""


def file_of(diff: str) -> str:
    """The file that a diff changes, as it names it; NotPatched where it names none."""
    for line in diff.splitlines():
        if line.startswith("--- "):
            return line[4:].split("\t")[0].strip()
    raise NotPatched("the patch names no file")


def applied(text: str, diff: str) -> str:
    """``text`` with the changes; NotPatched where it is not the text that the diff was made of."""
    lines, at, inside = _lines(text), 0, False
    made: list[str] = []
    rows = [row.removesuffix("\n") for row in _lines(diff)]
    for number, row in enumerate(rows):
        hunk = _HUNK.match(row)
        if hunk is not None:
            first = int(hunk[1]) - (hunk[2] != "0")
            if first < at or first > len(lines):
                raise NotPatched("the file is shorter than the patch expects")
            made += lines[at:first]
            at, inside = first, True
        elif not inside or row == _NO_NEWLINE:
            continue
        else:
            whole = row[1:] + ("" if rows[number + 1 : number + 2] == [_NO_NEWLINE] else "\n")
            if row[:1] != "+" and (
                at >= len(lines) or lines[at].rstrip("\r\n") != row[1:].rstrip("\r")
            ):
                raise NotPatched(f"line {at + 1} of the file is not what the patch expects")
            if row[:1] == "+":
                made.append(whole)
            elif row[:1] != "-":
                made.append(lines[at])
            at += row[:1] != "+"
    if not inside:
        raise NotPatched("the patch changes nothing")
    return "".join(made + lines[at:])


def _lines(text: str) -> list[str]:
    """Each with its end, as ``patch`` counts them: form feeds end none."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def changed_functions(diff: str) -> list[Changed]:
    """Loaded functions that the patch changes; NotPatched where it changes more than functions."""
    path = Path(file_of(diff)).absolute()
    named = (each for each in functions() if each.__code__.co_filename.endswith(path.name))
    loaded = [each for each in named if Path(each.__code__.co_filename).absolute() == path]
    if not loaded:
        raise NotPatched(f"no function of {path.name} is loaded")
    file = loaded[0].__code__.co_filename
    with open(file, encoding="utf-8", newline="") as source:  # noqa: PTH123 - newlines as they are
        before = source.read()
    old = compile(before, file, "exec", dont_inherit=True)
    new = compile(applied(before, diff), file, "exec", dont_inherit=True)
    if not _alike(old, new, within=False):
        raise NotPatched("it changes code that has run already, when the file was loaded")
    olds, news = dict(_codes(old)), dict(_codes(new))
    changed = {name for name in olds if name not in news or not _alike(olds[name], news[name])}
    names = {name for name in changed if name.partition(".<locals>")[0] not in changed - {name}}
    if not names:
        raise NotPatched("it changes no code")
    for name in names:
        if name.rpartition(".")[2] in _MAKERS:
            raise NotPatched(f"it changes {name}(), which has made objects already")
    # What functools.wraps has renamed is known by its code.
    known = {code: name for name, code in olds.items()}
    called = {id(each): known.get(each.__code__, each.__qualname__) for each in loaded}
    found = [each for each in loaded if called[id(each)] in changed & set(news)]
    stacks = sys._current_frames().values()
    running = {each.f_code for stack in stacks for each, _ in walk_stack(stack)}
    for name in names:
        live = [each for each in found if called[id(each)] == name]
        if any(each.__code__ in running for each in live) or not live:
            raise NotPatched(f"it changes {name}(), which is running or not loaded")
    pairs = [(each, each.__code__, news[called[id(each)]]) for each in found]
    if any(old.co_freevars != new.co_freevars for _, old, new in pairs):
        raise NotPatched("it changes what a function reads of the one around it")
    return pairs


def functions() -> Iterator[FunctionType]:
    """All that are alive, each once.

    gc.freeze() hides what was there: that is found where modules and their classes name it.
    """
    found = {id(each): each for each in gc.get_objects() if type(each) is FunctionType}
    for module in list(sys.modules.values()) if gc.get_freeze_count() else ():
        # By type(): a lazy module's attributes, once looked at, import what they stand for.
        named = list(vars(module).values()) if type(module) is ModuleType else []
        classes = [each for each in named if issubclass(type(each), type)]
        named += [own for each in classes for own in vars(each).values()]
        plain = (each.__func__ if type(each) in _WRAPPED else each for each in named)
        found |= {id(each): each for each in plain if type(each) is FunctionType}
    return iter(found.values())


def _codes(code: CodeType, owner: str = "") -> Iterator[tuple[str, CodeType]]:
    """Code of functions by qualified name; bodies of classes are passed through."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and not inner.co_name.startswith("<"):
            name = owner + inner.co_name
            is_class = not inner.co_flags & 0x2  # CO_NEWLOCALS: every function has it
            if not is_class:
                yield name, inner
            yield from _codes(inner, f"{name}." if is_class else f"{name}.<locals>.")


def _alike(one: CodeType, other: CodeType, *, within: bool = True) -> bool:
    """Whether both do the same, wherever they stand; ``within``: functions inside as well."""

    def rest(code: CodeType) -> tuple[object, ...]:
        plain = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return code.co_code, names, plain, code.co_flags

    inner, others = (
        [each for each in code.co_consts if isinstance(each, CodeType)] for code in (one, other)
    )
    if rest(one) != rest(other) or len(inner) != len(others):
        return False
    for a, b in zip(inner, others, strict=True):
        is_class = not a.co_flags & 0x2
        if a.co_name != b.co_name:
            return False
        if (within or is_class) and not _alike(a, b, within=within):
            return False
    return True
