"""The Python module that Inductor writes, read as text: which kernels it defines and calls.

Never imported or evaluated. The shapes are those of torch/_inductor/codegen/wrapper.py, triton.py
and cpp.py, torch 2.6 to 2.13:

    # kernel path: /cache/ab/cabc.py
    # Topologically Sorted Source Nodes: [sin, add], Original ATen: [aten.sin, aten.add]
    # Source node to ATen node mapping:
    #   …
    triton_poi_fused_add_sin_0 = async_compile.triton('triton_poi_fused_add_sin_0', '''…''', …)
    cpp_fused_gelu_0 = async_compile.cpp_pybinding([…], r'''…''')

and in call():

    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
    # [Provenance debug handles] extern_kernels.addmm:1
    extern_kernels.addmm(…)
    buf3 = torch.ops.aten._fft_r2c.default(buf2, …)
    triton_poi_fused_add_sin_0.run(buf0, …)
"""

from __future__ import annotations

import re

import msgspec

from traceview.torchtext.remembered import remembered

CATEGORIES = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent_reduction",
    "for": "foreach",
    "tem": "template",
    "spl": "split_scan",
}
_DEFINES = " = async_compile."
_DEFINITION = re.compile(r"(?P<name>\w+) = async_compile\.(?P<how>\w+)\(")
_QUOTES = ("'''", '"""')
_TRITON = re.compile(r"(?:\A|_)triton_(?P<category>poi|red|per|for|tem|spl)_")
_NODES = re.compile(
    r"^\s*(?:#|//) (?:Topologically Sorted |Unsorted )?Source Nodes: \[(?P<nodes>[^\]\n]*)\], "
    r"Original ATen: \[(?P<ops>[^\n]*)\]\s*$"
)
_PATH = re.compile(r"^\s*(?:#|//) kernel path: (?P<path>.+?)\s*$")
_FILE_LINE = re.compile(r"File:? \"?(?P<file>[^\"\n,]+?)\"?(?:, line |:)(?P<line>\d{1,9})\b")
_NO_LAUNCH = ("assert_size_stride(", "assert_alignment(", "del ")
_MAKES = " = empty_strided_"
_SCOPES = ("def ", "class ", "return")
_INSIDE = re.compile(r"[\w.'\"]")  # in front of what is the rest of a longer name, or quoted
_HANDLE = re.compile(r"(?:#|//) \[Provenance debug handles\] (?P<name>.+):(?P<handle>\d{1,9})$")
_LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.")
_COMMENT_LINES = 500
_NOT_CALLED = ("torch.ops.inductor.", "torch.ops._c10d_functional.wait_tensor")

Names = dict[str, None]
"""Each once, in the order in which they came."""


class Kernel(msgspec.Struct, gc=False):
    """One kernel or library call of a generated module."""

    name: str
    category: str | None
    path: str | None = None
    source: str | None = None
    ops: Names = {}
    nodes: Names = {}
    lines: Names = {}
    launch_sites: int = 0


class Call(msgspec.Struct, gc=False):
    """One call of a kernel; ``handle`` is torch's number of it, ops and nodes those above it."""

    kernel: Kernel
    handle: int | None
    ops: Names
    nodes: Names


class _Above(msgspec.Struct, gc=False):
    """What the comments since the last call say."""

    kernel: Kernel
    handle: tuple[str, int] | None = None


def parse_output_code(text: str) -> tuple[list[Kernel], list[Call]]:
    """Kernels that ``text`` defines, then library calls it makes, each in order of appearance.

    With them every call of one, in the order of the text.
    """
    kernels: dict[str, Kernel] = {}
    body: list[str] = []
    at = 0
    while match := _definition(text, at):
        body.append(text[at : match.start()])
        source, at = _source(text, match.end())
        kernel = Kernel(match["name"], category_of(match["name"], match["how"]), source=source)
        _comments_above(text, match.start(), kernel)
        kernels.setdefault(kernel.name, kernel)
    body.append(text[at:])
    calls = _calls("".join(body), kernels)
    return list(kernels.values()), calls


def _definition(text: str, at: int) -> re.Match[str] | None:
    """The next line from ``at`` that begins with the definition of a kernel."""
    while (found := text.find(_DEFINES, at)) >= 0:
        start = text.rfind("\n", 0, found) + 1
        match = _DEFINITION.match(text, start) if start >= at else None
        if match is not None:
            return match
        at = found + len(_DEFINES)
    return None


def category_of(name: str, how: str) -> str | None:
    """Torch's category by the kernel's name; a Triton kernel of another name is the user's.

    ``how`` is the method of ``async_compile``; None for other languages and for multi-kernels.
    """
    if how.startswith("cpp"):
        return "cpp"
    match = _TRITON.search(name)
    if match:
        return CATEGORIES[match["category"]]
    return "user_triton" if how == "triton" else None


def _source(text: str, at: int) -> tuple[str | None, int]:
    """The quoted source of the definition that opens before ``at``, and where it ends."""
    line_end = text.find("\n", at)
    line_end = len(text) if line_end < 0 else line_end
    opened = [(i, quote) for quote in _QUOTES if (i := text.find(quote, at, line_end)) >= 0]
    if not opened:
        return None, at
    start, quote = min(opened)
    end = text.find(quote, start + 3)
    return (text[start + 3 : end], end + 3) if end >= 0 else (None, len(text))


def _comments_above(text: str, end: int, kernel: Kernel) -> None:
    """Read the comment lines that stand directly above ``end`` into ``kernel``."""
    above = _Above(kernel)
    for _ in range(_COMMENT_LINES):
        start = text.rfind("\n", 0, max(0, end - 1)) + 1
        line = text[start:end].strip()
        if not line.startswith(("#", "//")):
            break
        _comment(line, above)
        end = start


def _comment(line: str, above: _Above) -> None:
    """One comment; most are of a graph's fragment and tell nothing that the graph does not."""
    kernel = above.kernel
    if "Original ATen: " in line and (nodes := _NODES.match(line)):
        kernel.nodes |= dict.fromkeys(_names(nodes["nodes"]))
        kernel.ops |= dict.fromkeys(_names(nodes["ops"]))
    elif "kernel path: " in line and (path := _PATH.match(line)):
        kernel.path = path["path"]
    elif "[Provenance" in line and (handle := _HANDLE.match(line)):
        above.handle = handle["name"], int(handle["handle"])
    elif "File" in line and (place := _FILE_LINE.search(line)):
        kernel.lines[f"{place['file']}:{place['line']}"] = None


def _calls(body: str, kernels: dict[str, Kernel]) -> list[Call]:
    """The calls in ``body``, counted; library calls become kernels of their own.

    What comments say is of the calls in the next line that has any, and of none beyond a scope.
    """
    found: list[Call] = []
    above = _Above(Kernel("", None))
    names = {*(name[:5] for name in kernels), *_LIBRARIES}
    may_call = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names)))})[\w.]*(?=\()")
    for line in map(str.strip, body.split("\n")):
        if line.startswith(("#", "//")):
            _comment(line, above)
        elif line.startswith(_NO_LAUNCH) or _MAKES in line:
            continue
        elif "(" in line and (called := _called_in(line, may_call, kernels)):
            found.extend([_call(kernel, above) for kernel in called])
            above = _Above(Kernel("", None))
        elif line.startswith(_SCOPES):
            above = _Above(Kernel("", None))
            if line.startswith("def benchmark_compiled_module") or line == "def get_args():":
                break
    return found


def _call(kernel: Kernel, above: _Above) -> Call:
    kernel.launch_sites += 1
    _merge(kernel, above.kernel)
    name, handle = above.handle or (None, None)
    handle = handle if name == kernel.name else None
    return Call(kernel, handle, above.kernel.ops, above.kernel.nodes)


def _called_in(line: str, may_call: re.Pattern[str], kernels: dict[str, Kernel]) -> list[Kernel]:
    """The kernels that a line calls, in order."""
    called = []
    name = may_call.search(line)
    while name is not None:
        start, end = name.span()
        inside = start and _INSIDE.match(line, start - 1)
        if not inside and (kernel := _called(name[0], kernels)):
            called.append(kernel)
        name = may_call.search(line, end)
    return called


def _called(name: str, kernels: dict[str, Kernel]) -> Kernel | None:
    """The kernel that a call of ``name`` launches: a defined one, or a library call."""
    known = kernels.get(name.removesuffix(".run")) or kernels.get(name)
    if known is not None:
        return known
    if not name.startswith(_LIBRARIES) or name.startswith(_NOT_CALLED):
        return None
    if name.startswith("aten."):
        name = f"torch.ops.{name}"
    category = "extern" if name.startswith("extern_kernels.") else "fallback"
    return kernels.setdefault(name, Kernel(name, category))


def _merge(kernel: Kernel, above: Kernel) -> None:
    """Operators and nodes named above a call, where the definition itself names none."""
    if kernel.category in ("extern", "fallback") or not kernel.ops:
        kernel.ops |= above.ops
        kernel.nodes |= above.nodes
    kernel.lines |= above.lines


@remembered()  # the same stand above a kernel's definition and its call
def _names(listed: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, listed.split(","))))
