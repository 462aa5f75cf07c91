"""Stack frames as logs quote them, whose code they are, and the names of resume functions.

A stack is a sequence of ``StackFrame``, outermost first, as ``traceback`` prints it. The user's own
code is what is left when torch, installed packages, the standard library, generated code and
traceview's own hooks are taken out.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from traceview.torchtext.remembered import remembered

_QUOTED = re.compile(r'^\s*File "(?P<file>.*?)", line (?P<line>\d{1,9})(?:, in (?P<function>.*))?$')
#: Above the user's lines that were being traced, in messages of the compiler's.
TRACED = "from user code:"
#: The name that Dynamo gives to the code after a graph break (torch/_dynamo/resume_execution.py).
_RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)")
_MARKER = re.compile(r"^[\^~\s]+$")
_TORCH_ROOT = re.compile(
    r"^(?P<root>.*/torch/)(?:_dynamo|_inductor|_functorch|_compile\.py|nn/modules|utils/_|fx/)"
)
_FOREIGN = re.compile(
    r"/(?:site|dist)-packages/"
    r"|/lib(?:64)?/python\d+(?:\.\d+)*t?/"
    r"|^<(?:frozen|eval_with_key|torch_package)"
    r"|torchinductor_[^/]*/"
    r"|(?:^|/)(?:traceview/collectors|collectors/child)/"
)

#: The file name of a notebook cell's code: collectors/child/notebook.py gives it.
NOTEBOOK_CELL = re.compile(r"(?P<notebook>.*\.ipynb) cell (?P<cell>\d+)")

_DEMO = re.compile(r"/traceview/demos/\w+\.py$")  # a user's script that happens to be installed


#: The top folder of an installed package, or its only module.
_PACKAGE = re.compile(r"/(?:site|dist)-packages/(?P<name>\w+)(?=/|\.py$)")


def package(file: str) -> str | None:
    """The installed package that ``file`` belongs to, ``torch``; None where the path shows none."""
    found = None if _DEMO.search(file) else _PACKAGE.search(file)
    return found["name"] if found else None


class StackFrame(msgspec.Struct, frozen=True):
    """One stack frame: file, line (1-based), function and the source text there, where quoted."""

    file: str
    line: int | None
    function: str | None
    code: str | None = None


def torch_roots(files: Iterable[str]) -> frozenset[str]:
    """Folders that torch is installed in, inferred from torch's own files among ``files``.

    A development install of torch is no site-packages: ``/src/pytorch/torch/_dynamo/x.py`` makes
    ``/src/pytorch/torch/`` a root.
    """
    return frozenset(match["root"] for file in files if (match := _TORCH_ROOT.match(file)))


def is_user_frame(frame: StackFrame, roots: frozenset[str] = frozenset()) -> bool:
    """Whether ``frame`` is neither torch's, nor a package's, nor the standard library's."""
    file = frame.file
    if _DEMO.search(file):
        return True
    if not file or _FOREIGN.search(file) or file.startswith(_own_collectors()):
        return False
    if file == "<string>":  # ``python -c`` is the user's, what exec() ran inside a library is not
        return frame.function == "<module>"
    return not any(file.startswith(root) for root in roots)


@remembered()
def is_user_file(file: str) -> bool:
    """``is_user_frame`` of a file alone; graphs name few files, many times."""
    return is_user_frame(StackFrame(file, None, None))


def first_user_frame(stack: Sequence[StackFrame]) -> StackFrame | None:
    """The innermost frame of ``stack`` (outermost first) that is the user's own, if any is."""
    roots = torch_roots(frame.file for frame in stack)
    return next((frame for frame in reversed(stack) if is_user_frame(frame, roots)), None)


def parse_traceback(text: str) -> tuple[StackFrame, ...]:
    """The frames that ``text`` quotes as Python's traceback does, outermost first.

    Reading starts at the first ``File "…", line n`` and ends at the first line that neither is one
    nor can be the source text of one.
    """
    frames: list[StackFrame] = []
    open_frame = False
    for line in text.splitlines():
        match = _QUOTED.match(line)
        if match:
            number, function = int(match["line"]), match["function"]
            frames.append(StackFrame(match["file"], number, function))
            open_frame = True
        elif not frames:
            continue
        elif not line.startswith((" ", "\t")):
            break
        elif open_frame and not _MARKER.match(line):
            last = frames[-1]
            frames[-1] = StackFrame(last.file, last.line, last.function, line.strip())
            open_frame = False
    return tuple(frames)


class Resumed(NamedTuple):
    """A resume function: code that Dynamo compiles after a graph break, by what it resumes."""

    function: str
    line: int


def resumed(name: str | None) -> Resumed | None:
    """What the resume function called ``name`` resumes; None for any other function.

    The code after a break in a resume function belongs to the function that was written.
    """
    match = _RESUMED.fullmatch(name or "")
    if match is None:
        return None
    outer = resumed(match["function"])
    return Resumed(outer.function if outer else match["function"], int(match["line"]))


def written_name(name: str | None) -> str | None:
    """The function's name in the source: for a resume function, of the function it resumes."""
    rest = resumed(name)
    return rest.function if rest else name


def stack_json(stack: Sequence[StackFrame], *, with_code: bool = True) -> str | None:
    """``stack`` as the tables keep it: a JSON list of objects; None for an empty stack."""
    if not stack:
        return None
    rows = [msgspec.structs.asdict(frame) for frame in stack]
    for row in rows:
        if not with_code or row["code"] is None:
            del row["code"]
    return msgspec.json.encode(rows).decode()


def user_columns(stack: Sequence[StackFrame]) -> dict[str, Any]:
    """``user_file`` … ``user_stack`` of a stack, as the tables have them."""
    nearest = first_user_frame(stack)
    return {
        "user_file": nearest.file if nearest else None,
        "user_line": nearest.line if nearest else None,
        "user_function": nearest.function if nearest else None,
        "user_stack": stack_json(stack),
    }


@cache
def _own_collectors() -> tuple[str, ...]:
    """Folders of traceview's collectors on this machine (elsewhere they are in site-packages)."""
    found = importlib.util.find_spec("traceview.collectors")
    places = found.submodule_search_locations if found else None
    return tuple(f"{place.rstrip('/')}/" for place in places or ())


#: Dynamo's warning about a call of a function with a cache, which it traces (torch 2.7 to 2.13).
CACHED_CALL = re.compile(
    r"call to a `functools\.lru_cache`-wrapped function at '(?P<file>[^'\n]+):(?P<line>\d{1,9})'"
)
