"""The Python module that Inductor writes, read as text: kernels, their calls, ``call()``.

Never imported or evaluated. The shapes are those of torch/_inductor/codegen/wrapper.py, triton.py
and cpp.py, torch 2.6 to 2.13:

    # kernel path: /cache/ab/cabc.py
    # Topologically Sorted Source Nodes: [sin, add], Original ATen: [aten.sin, aten.add]
    # Source node to ATen node mapping:
    #   …
    triton_poi_fused_add_sin_0 = async_compile.triton('triton_poi_fused_add_sin_0', '''…''', …)
    cpp_fused_gelu_0 = async_compile.cpp_pybinding([…], r'''…''')

and in call():

    assert_size_stride(arg0_1, (64, 512), (512, 1))
    buf0 = empty_strided_cuda((64, 512), (512, 1), torch.float32)
    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
    # [Provenance debug handles] extern_kernels.mm:1
    extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (512, 512), (1, 512), 0), out=buf0)
    buf3 = torch.ops.aten._fft_r2c.default(buf2, …)
    buf1 = buf0; del buf0  # reuse
    triton_poi_fused_add_sin_0.run(buf1, 32768, stream=stream0)
    return (buf1, )

The inputs' dtypes stand in ``rand_strided((64, 512), (512, 1), …, dtype=torch.float32)``. What a
kernel's own source moves is read in ``kernel_source``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from textwrap import dedent

from traceview.torchtext.dtypes import dtype_of
from traceview.torchtext.fx import op_name
from traceview.torchtext.remembered import remembered

#: Torch's word in a Triton kernel's name → its category.
CATEGORIES = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent_reduction",
    "for": "foreach",
    "tem": "template",
    "spl": "split_scan",
}
#: The profiler's name of a C++ kernel has its graph in front of the name in the code.
PROFILED_CPP = r"^graph_\d+_(cpp_)"

_DEFINITION = re.compile(r"^(?P<name>\w+) = async_compile\.(?P<how>\w+)\(", re.MULTILINE)
_QUOTED = re.compile(r"[^\n]*?(?P<quote>'''|\"\"\")")
_TRITON = re.compile(r"(?:\A|_)triton_(?P<category>poi|red|per|for|tem|spl)_")
_NODES = re.compile(
    r"^\s*(?:#|//) (?:Topologically Sorted |Unsorted )?Source Nodes: \[(?P<nodes>[^\]\n]*)\], "
    r"Original ATen: \[(?P<ops>[^\n]*)\]\s*$"
)
_PATH = re.compile(r"^\s*(?:#|//) kernel path: (?P<path>.+?)\s*$")
_FILE_LINE = re.compile(r"File:? \"?(?P<file>[^\"\n,]+?)\"?(?:, line |:)(?P<line>\d{1,9})\b")
_HANDLE = re.compile(r"(?:#|//) \[Provenance debug handles\] (?P<name>.+):(?P<handle>\d{1,9})$")
_COMMENT_LINES = 500
_NO_LAUNCH = ("assert_size_stride(", "assert_alignment(", "del ")
_MAKES = " = empty_strided_"
_SCOPES = ("def ", "class ", "return")
_INSIDE = re.compile(r"[\w.'\"]")  # in front of what is the rest of a longer name, or quoted
_LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.")
_NO_WORK = ("torch.ops.inductor.", "torch.ops._c10d_functional.wait_tensor")

#: Operators that Inductor puts into a kernel's name at most, and words of the longest operator.
_NAMED_OPERATORS, _MOST_WORDS = 10, 8
_FUSED_NAME = re.compile(r"fused_(\w+)_\d+$")

_FUNCTION = re.compile(r"^(?P<indent> *)def (?:call|partition_\d+)\(.*\n", re.MULTILINE)
_INPUT = re.compile(
    r"^    (?P<name>\w+) = rand_strided\(.*?dtype=torch\.(?P<dtype>\w+)\)", re.MULTILINE
)
_LONGEST = 8 << 20

Names = dict[str, None]
"""Each once, in the order in which they came."""


@dataclass(slots=True)
class _Comments:
    """What comments above a definition or a call say."""

    path: str | None = None
    ops: Names = field(default_factory=dict)
    nodes: Names = field(default_factory=dict)
    lines: Names = field(default_factory=dict)
    handle: tuple[str, int] | None = None

    def read(self, line: str) -> None:
        """Read one more; most are of a graph's fragment, which the graph itself has too."""
        if "Original ATen: " in line and (nodes := _NODES.match(line)):
            self.nodes |= dict.fromkeys(_names(nodes["nodes"]))
            self.ops |= dict.fromkeys(_names(nodes["ops"]))
        elif "kernel path: " in line and (path := _PATH.match(line)):
            self.path = path["path"]
        elif "[Provenance" in line and (handle := _HANDLE.match(line)):
            self.handle = handle["name"], int(handle["handle"])
        elif "File" in line and (place := _FILE_LINE.search(line)):
            self.lines[f"{place['file']}:{place['line']}"] = None


@dataclass(slots=True)
class Kernel:
    """One kernel or library call of a generated module."""

    name: str
    category: str | None
    path: str | None = None
    source: str | None = None
    ops: Names = field(default_factory=dict)
    nodes: Names = field(default_factory=dict)
    lines: Names = field(default_factory=dict)
    launch_sites: int = 0

    def called(self, above: _Comments) -> Call:
        """One more call; operators and nodes above it are the kernel's if it names none itself."""
        self.launch_sites += 1
        if self.category in ("extern", "fallback") or not self.ops:
            self.ops |= above.ops
            self.nodes |= above.nodes
        self.lines |= above.lines
        name, handle = above.handle or (None, None)
        return Call(self, handle if name == self.name else None, above.ops, above.nodes)


@dataclass(slots=True)
class Call:
    """One call of a kernel; ``handle`` is torch's number of it, ops and nodes those above it."""

    kernel: Kernel
    handle: int | None
    ops: Names
    nodes: Names


def defines_kernel(line: str) -> bool:
    """Whether a kernel's definition begins in ``line``."""
    return _DEFINITION.match(line) is not None


def parse_output_code(text: str) -> tuple[list[Kernel], list[Call]]:
    """Kernels that ``text`` defines, then library calls it makes, each in order of appearance.

    With them every call of one, in the order of the text.
    """
    kernels: dict[str, Kernel] = {}
    body: list[str] = []
    at = 0
    while match := _DEFINITION.search(text, at):
        body.append(text[at : match.start()])
        source, at = None, match.end()
        if quoted := _QUOTED.match(text, at):
            end = text.find(quoted["quote"], quoted.end())
            source = text[quoted.end() : end] if end >= 0 else None
            at = end + 3 if end >= 0 else len(text)
        name, above = match["name"], _Comments()
        for line in map(str.strip, reversed(body[-1].split("\n")[-1 - _COMMENT_LINES : -1])):
            if not line.startswith(("#", "//")):
                break
            above.read(line)
        category = category_of(name, match["how"])
        if name not in kernels:
            kernels[name] = Kernel(
                name, category, above.path, source, above.ops, above.nodes, above.lines
            )
    body.append(text[at:])
    # Library calls become kernels of their own. What comments say is of the calls in the next line
    # that has any, and of none beyond a scope.
    calls: list[Call] = []
    said = _Comments()
    names = {*(name[:5] for name in kernels), *_LIBRARIES}
    may_call = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names)))})[\w.]*(?=\()")
    for line in map(str.strip, "".join(body).split("\n")):
        if line.startswith(("#", "//")):
            said.read(line)
        elif line.startswith(_NO_LAUNCH) or _MAKES in line:
            continue
        elif "(" in line and (called := _called_in(line, may_call, kernels)):
            calls.extend([kernel.called(said) for kernel in called])
            said = _Comments()
        elif line.startswith(_SCOPES):
            said = _Comments()
            if line.startswith("def benchmark_compiled_module") or line == "def get_args():":
                break
    return list(kernels.values()), calls


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


def _called_in(line: str, may_call: re.Pattern[str], kernels: dict[str, Kernel]) -> list[Kernel]:
    """The kernels that a line calls, in order: defined ones, and library calls."""
    called = []
    for found in may_call.finditer(line):
        name, start = found[0], found.start()
        if start and _INSIDE.match(line, start - 1):
            continue
        kernel = kernels.get(name.removesuffix(".run")) or kernels.get(name)
        if kernel is None and name.startswith(_LIBRARIES) and not name.startswith(_NO_WORK):
            if name.startswith("aten."):
                name = f"torch.ops.{name}"
            category = "extern" if name.startswith("extern_kernels.") else "fallback"
            kernel = kernels.setdefault(name, Kernel(name, category))
        if kernel is not None:
            called.append(kernel)
    return called


@remembered()  # the same stand above a kernel's definition and its call
def _names(listed: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, listed.split(","))))


def library_operator(kernel_name: str) -> str:
    """The operator of a library call: ``aten.addmm`` for ``extern_kernels.addmm``."""
    if kernel_name.startswith("extern_kernels."):
        return f"aten.{kernel_name.removeprefix('extern_kernels.')}"
    return op_name(kernel_name)


def named_operators(kernel_name: str, known: Container[str]) -> list[str]:
    """``triton_poi_fused_add_gelu_0`` as [add, gelu], if all of it can be read so, else nothing.

    Inductor names a kernel after the operators that the user called (``original_aten``), where the
    operators in its code are decomposed: gelu has become erf. It leaves out those after the tenth
    (``torch._inductor.config.triton.descriptive_names``, ``kernel_name_max_ops``).
    """
    match = _FUSED_NAME.search(kernel_name)
    words = match[1].split("_") if match else []
    found: list[str] = []
    while words:
        sizes = range(min(len(words), _MOST_WORDS), 0, -1)
        size = next((n for n in sizes if "_".join(words[:n]) in known), None)
        if size is None or len(found) + 1 == _NAMED_OPERATORS:
            return []
        found.append("_".join(words[:size]))
        words = words[size:]
    return found


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor of the generated code; a size that is a symbol is None."""

    dims: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    dtype: str | None


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel call: a tensor by its buffer's name, or a value as text."""

    name: str | None = None
    buffer: Buffer | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """One kernel call; ``library`` is False for a kernel that the module defines."""

    kernel: str
    library: bool
    arguments: tuple[Argument, ...]
    keywords: dict[str, Argument]
    result: str | None = None


@dataclass(slots=True)
class Function:
    """``call()`` or a partition of it; ``reused`` leads from a buffer to the one it was made of.

    ``dtypes`` are those of the module's inputs.
    """

    dtypes: dict[str, str]
    sites: list[Site] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    reused: dict[str, str] = field(default_factory=dict)
    returned: set[str] = field(default_factory=set)

    def read(self, statement: ast.stmt) -> None:
        """Take note of what one statement makes, calls or returns."""
        if isinstance(statement, ast.Return) and statement.value is not None:
            names = (n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name))
            self.returned.update(names)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._call(statement.value, None)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._assign(statement.targets[0].id, statement.value)

    def _assign(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Call):
            buffer = self._made(value)
            if buffer is None:
                self._call(value, name)
                return
            self.buffers[name] = buffer
            if value.args and isinstance(value.args[0], ast.Name):
                self.reused[name] = value.args[0].id
        elif isinstance(value, ast.Name):
            self.reused[name] = value.id
            if value.id in self.buffers:
                self.buffers[name] = self.buffers[value.id]
        elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            self.reused[name] = value.value.id

    def _made(self, call: ast.Call) -> Buffer | None:
        """The tensor that ``empty_strided_*`` or ``reinterpret_tensor`` gives."""
        callee = ast.unparse(call.func)
        if callee.startswith("empty_strided") and len(call.args) >= 3:
            return _buffer(call.args[:2], dtype_of(ast.unparse(call.args[2])))
        if callee == "reinterpret_tensor" and len(call.args) >= 3:
            base = self._argument(call.args[0]).buffer
            return _buffer(call.args[1:3], base.dtype if base else None)
        return None

    def _call(self, call: ast.Call, result: str | None) -> None:
        callee = ast.unparse(call.func)
        if callee == "assert_size_stride" and len(call.args) >= 3:
            name = ast.unparse(call.args[0])
            known = self.buffers.get(name)
            dtype = known.dtype if known else self.dtypes.get(name)
            self.buffers[name] = _buffer(call.args[1:3], dtype_of(dtype or ""))
            return
        library = callee.startswith(_LIBRARIES)
        defined = callee.endswith(".run") or callee.startswith("cpp_")
        if callee.startswith(_NO_WORK) or not (library or defined):
            return
        self.sites.append(
            Site(
                callee.removesuffix(".run"),
                library,
                tuple(map(self._argument, call.args)),
                {k.arg: self._argument(k.value) for k in call.keywords if k.arg},
                result,
            )
        )

    def _argument(self, node: ast.expr) -> Argument:
        if isinstance(node, ast.Name):
            return Argument(node.id, self.buffers.get(node.id))
        if isinstance(node, ast.Call) and (buffer := self._made(node)):
            first = node.args[0]
            return Argument(first.id if isinstance(first, ast.Name) else None, buffer)
        text = ast.unparse(node)
        return Argument(value="" if text == "None" else text)


def read_program(text: str) -> list[Function]:
    """The functions of a generated module that call kernels; none where it cannot be parsed."""
    if len(text) > _LONGEST:
        return []
    dtypes = {m["name"]: m["dtype"] for m in _INPUT.finditer(text)}
    functions = []
    for match in _FUNCTION.finditer(text):
        indent = len(match["indent"])
        end = re.compile(rf"^ {{0,{indent}}}\S", re.MULTILINE).search(text, match.end())
        try:
            module = ast.parse(dedent(text[match.start() : end.start() if end else len(text)]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if module.body and isinstance(module.body[0], ast.FunctionDef):
            functions.append(Function(dtypes))
            for statement in _statements(module.body[0].body):
                functions[-1].read(statement)
    return functions


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Simple statements in order, those inside ``with`` and ``if`` among them."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.If, ast.Try)):
            yield from _statements(statement.body)
        else:
            yield statement


def _buffer(shape: list[ast.expr], dtype: str | None) -> Buffer:
    return Buffer(_sizes(shape[0]), _sizes(shape[1]), dtype)


def _sizes(node: ast.expr) -> tuple[int | None, ...]:
    """Numbers of a tuple; None for a symbol or an expression."""
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
    values = [e.value if isinstance(e, ast.Constant) else None for e in elements]
    return tuple(v if type(v) is int and v >= 0 else None for v in values)
