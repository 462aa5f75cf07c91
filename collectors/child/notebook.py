"""Runs a notebook's code cells in order, in one ``__main__``, as Jupyter's Run All does.

Started as a script, ``notebook.py NB.ipynb ARGS``: the notebook's format is plain JSON, so neither
Jupyter nor IPython is needed. Each cell is compiled under a name of its own, ``NB.ipynb cell 4``,
and ``linecache`` has its source: tracebacks, Dynamo and the profiler name the cell and its line.
Cells are numbered as Jupyter shows them, ``[4]``: code cells that are not empty, from 1.

What IPython adds to Python is left out, line by line, so that lines keep their numbers:

- ``%time STATEMENT`` runs the statement, ``%timeit STATEMENT`` runs it as often as IPython would;
- ``%%time``, ``%%timeit``, ``%%capture`` and ``%%prun`` run the rest of the cell;
- other magics, ``!command`` and ``name?`` do nothing; a cell of another language is left out.

The parent imports `read` to check the notebook and to say what is left out.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import re
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 100_000_000  # outputs are in the file: images and tables
MAX_CELLS = 10_000
MAX_CELL_CHARACTERS = 200_000  # of code
MAX_MAGICS = 200  # in a cell: each is another look by Python's parser
#: A magic or a shell command on a line by itself, or assigned; a question about a name.
_FOREIGN = re.compile(r"\s*(?:[%!?]|[\w.,\s]+=\s*[%!])|.*\?\s*$")
#: ``%time`` and ``%timeit``: options, then what is run.
_TIMED = re.compile(r"(?P<indent>\s*)%(?P<name>time|timeit)\s+(?P<options>(?:-\w+\s*\d*\s+)*)")
#: Cell magics of which the rest of the cell is Python for this process.
_RUN = frozenset({"time", "timeit", "capture", "prun"})
TIMES = "__timeit__"
MIN_TIMES, MIN_SECONDS = 8, 1.6  # IPython's: a first run, seven repeats of at least 0.2 s


class NotANotebook(ValueError):
    """The file can't be read as a notebook of Python; the text is a sentence."""


@dataclass(frozen=True)
class Cell:
    """A code cell: its number, the file name that its code has, and its Python, line for line."""

    number: int
    name: str
    python: str
    left_out: tuple[str, ...] = ()
    repeated: bool = False


def read(path: str) -> list[Cell]:
    """The code cells of the notebook at ``path``; OSError, or NotANotebook with what is wrong."""
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes 7 ms more to import
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise NotANotebook(f"It is larger than {MAX_BYTES // 1_000_000} MB.")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotANotebook(f"It is not JSON ({type(error).__name__}).") from None
    if not isinstance(content, dict):
        raise NotANotebook("Its JSON is not an object.")
    sheets = content.get("worksheets")  # format 3
    if "cells" not in content and isinstance(sheets, list):
        inside = [s.get("cells") for s in sheets if isinstance(s, dict)]
        cells: Any = [each for some in inside if isinstance(some, list) for each in some]
    else:
        cells = content.get("cells")
    if not isinstance(cells, list):
        raise NotANotebook("It has no list of cells.")
    language = _language(content)
    if language not in (None, "python", "ipython", "python3"):
        raise NotANotebook(f"Its language is {language[:40]}, not Python.")
    sources = [_source(each) for each in cells[:MAX_CELLS]]
    if len(cells) > MAX_CELLS:
        raise NotANotebook(f"It has more than {MAX_CELLS:,} cells.")
    absolute = os.path.abspath(path)  # noqa: PTH100
    codes = [text for text in sources if text is not None and text.strip()]
    return [_cell(number, absolute, text) for number, text in enumerate(codes, 1)]


def _language(content: dict[str, Any]) -> str | None:
    metadata = content.get("metadata")
    for part in ("language_info", "kernelspec"):
        named = metadata.get(part) if isinstance(metadata, dict) else None
        name = (
            named.get("name" if part == "language_info" else "language")
            if isinstance(named, dict)
            else None
        )
        if isinstance(name, str):
            return name.lower()
    return None


def _source(cell: Any) -> str | None:
    """The text of a code cell: a string or a list of lines (``input`` in format 3)."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    if len(source) > MAX_CELL_CHARACTERS:
        raise NotANotebook(f"A cell has more than {MAX_CELL_CHARACTERS:,} characters.")
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _cell(number: int, path: str, text: str) -> Cell:
    lines = text.split("\n")
    first = next(n for n, line in enumerate(lines) if line.strip())
    left_out: list[str] = []
    repeated = False
    if lines[first].startswith("%%"):
        magic = lines[first][2:].split(maxsplit=1)
        name = magic[0] if magic else ""
        if name in _RUN:
            repeated = name == "timeit"
            lines[first] = ""
        else:
            left_out.append(f"%%{name}")
            lines = []
    # The lines with ``pass`` for what is no Python: Python's parser finds it, not a pattern.
    for _ in range(MAX_MAGICS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse("\n".join(lines))
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
        except (ValueError, RecursionError, MemoryError):
            break
        if not (0 <= at < len(lines) and _FOREIGN.match(lines[at])):
            break
        timed = _TIMED.match(lines[at])
        rest = lines[at][timed.end() :] if timed else ""
        if timed and rest:
            loop = f"for __ in {TIMES}(): " if timed["name"] == "timeit" else ""
            lines[at] = f"{timed['indent']}{loop}{rest}"
            continue
        left_out.append(lines[at].strip()[:80])
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        goes_on = lines[at].rstrip().endswith("\\")
        lines[at] = f"{indent}pass"
        while goes_on and at + 1 < len(lines):
            at += 1
            goes_on = lines[at].rstrip().endswith("\\")
            lines[at] = ""
    python = "\n".join(lines)
    return Cell(number, f"{path} cell {number}", python, tuple(left_out), repeated)


def times() -> Iterator[int]:
    """As many rounds as IPython's ``%timeit`` runs a statement."""
    began, done = time.perf_counter(), 0
    while done < MIN_TIMES or time.perf_counter() - began < MIN_SECONDS:
        yield done
        done += 1


def run(cells: list[Cell], names: dict[str, Any]) -> None:
    """Run the cells in ``names``; whatever one raises ends it."""
    for cell in cells:
        # Without a time of modification: linecache keeps it, though there is no such file.
        lines = [line + "\n" for line in cell.python.split("\n")]
        linecache.cache[cell.name] = (len(cell.python), None, lines, cell.name)
    for cell in cells:
        code = compile(cell.python, cell.name, "exec", dont_inherit=True)
        for _ in times() if cell.repeated else (0,):
            exec(code, names)


def main() -> None:
    """``sys.argv`` is ours, then the notebook and its arguments, as it will see them."""
    del sys.argv[0]
    path = sys.argv[0]
    try:
        cells = read(path)
    except (OSError, NotANotebook) as error:
        sys.exit(f"{path} can't be run as a notebook: {error}")
    folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    # As in Jupyter, `__main__` has no file: a spawned worker would run that as a script.
    ours, module = sys.modules["__main__"], types.ModuleType("__main__")
    names = module.__dict__
    names.update(__builtins__=__builtins__, display=_display, **{TIMES: times})
    names["__traceview_runner__"] = ours  # its globals must outlive the switch
    sys.modules["__main__"] = module
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_exception
    run(cells, names)


def _print_exception(
    kind: type[BaseException], error: BaseException, tb: types.TracebackType | None
) -> None:
    """From the cell inward, with its source: before 3.13 Python itself shows that of files only."""
    while tb is not None and tb.tb_next is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    traceback.print_exception(kind, error, tb)


def _display(*values: Any, **_options: Any) -> None:
    """IPython's ``display``, without pictures."""
    sys.stdout.write(" ".join(map(str, values)) + "\n")


if __name__ == "__main__":
    main()
