"""Runs a script, or a module, as if one of its files had been edited.

    edited.py DIFF TICKS SECONDS WORDS

WORDS are what follows ``python``: ``SCRIPT ARGS`` or ``-m MODULE ARGS``. The file that the diff
names is compiled from its changed text, as the script or where it is imported; nothing is written.
Tracebacks show the lines of the file as it is on disk. A DIFF of ``-`` changes nothing. How fast a
script's loops go is written to TICKS (see ``ticks.py``).
"""

from __future__ import annotations

import ast
import atexit
import os
import runpy
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

NONE = "-"


def on_import(path: Path, code: CodeType) -> None:
    """Give the file this code wherever it is imported; cached bytecode of it is passed over."""
    plain = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        is_it = Path(self.get_filename(fullname)).absolute() == path
        return code if is_it else plain(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def main() -> None:
    """Become what Python makes of the words."""
    patches, ticks = (
        runpy.run_path(str(Path(__file__).with_name(f"{name}.py"))) for name in ("patches", "ticks")
    )
    _, diff_file, ticks_file, seconds, *words = sys.argv
    path = text = None
    if diff_file != NONE:
        diff = Path(diff_file).read_text(encoding="utf-8")
        path = Path(patches["file_of"](diff)).absolute()
        with open(path, encoding="utf-8", newline="") as file:  # noqa: PTH123 - newlines as they are
            text = patches["applied"](file.read(), diff)
        on_import(path, compile(text, str(path), "exec", dont_inherit=True))
    del sys.path[0]
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv, script = words, Path(words[0]).absolute()
    sys.path.insert(0, str(script.resolve().parent))
    tree = ast.parse(text if text is not None and script == path else script.read_bytes())
    clock = ticks["Ticks"](Path(ticks_file), float(seconds))
    if script.parent != Path(__file__).absolute().parent:  # a notebook's cells are not steps
        clock.put_into(tree)
        atexit.register(clock.close)
    module: Any = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(script), __builtins__=__builtins__)
    module.__dict__[ticks["NAME"]] = clock
    sys.modules["__main__"] = module
    exec(compile(tree, str(script), "exec", dont_inherit=True), module.__dict__)


if __name__ == "__main__":
    main()
