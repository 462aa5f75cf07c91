"""The ``call()`` of a generated module, read as text: its buffers and its kernel calls, in order.

Parsed (``ast``), never run. Shapes of torch/_inductor/codegen/wrapper.py, torch 2.6 to 2.13:

    assert_size_stride(arg0_1, (64, 512), (512, 1))
    buf0 = empty_strided_cuda((64, 512), (512, 1), torch.float32)
    extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (512, 512), (1, 512), 0), out=buf0)
    buf1 = buf0; del buf0  # reuse
    triton_poi_fused_relu_0.run(buf1, 32768, stream=stream0)
    return (buf1, )

and, for the inputs' dtypes, ``rand_strided((64, 512), (512, 1), …, dtype=torch.float32)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from textwrap import dedent

import msgspec

from traceview.derive.limits.dtypes import dtype_of

_FUNCTION = re.compile(r"^(?P<indent> *)def (?P<name>call|partition_\d+)\(.*\n", re.MULTILINE)
_INPUT = re.compile(
    r"^    (?P<name>\w+) = rand_strided\(.*?dtype=torch\.(?P<dtype>\w+)\)", re.MULTILINE
)
_LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.")
_NO_WORK = ("torch.ops.inductor.", "torch.ops._c10d_functional.wait_tensor")
_LONGEST = 8 << 20


class Buffer(msgspec.Struct, frozen=True):
    """A tensor of the generated code; a size that is a symbol is None."""

    dims: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    dtype: str | None


class Argument(msgspec.Struct, frozen=True):
    """One argument of a kernel call: a tensor by its buffer's name, or a value as text."""

    name: str | None = None
    buffer: Buffer | None = None
    value: str = ""


class Site(msgspec.Struct, frozen=True):
    """One kernel call; ``library`` is False for a kernel that the module defines."""

    kernel: str
    library: bool
    arguments: tuple[Argument, ...]
    keywords: dict[str, Argument]
    result: str | None = None


class Function(msgspec.Struct):
    """``call()`` or a partition of it; ``reused`` leads from a buffer to the one it was made of."""

    name: str
    sites: list[Site] = []
    buffers: dict[str, Buffer] = {}
    reused: dict[str, str] = {}
    returned: set[str] = set()


def read_program(text: str) -> list[Function]:
    """The functions of a generated module that call kernels; none where it cannot be parsed."""
    if len(text) > _LONGEST:
        return []
    dtypes = {m["name"]: m["dtype"] for m in _INPUT.finditer(text)}
    functions = []
    for match in _FUNCTION.finditer(text):
        body = _parsed(text, match)
        if body is not None:
            function = Function(match["name"])
            reader = _Reader(function, dtypes)
            for statement in _statements(body.body):
                reader.statement(statement)
            functions.append(function)
    return functions


def _parsed(text: str, match: re.Match[str]) -> ast.FunctionDef | None:
    """The function that starts at ``match``: all lines that are indented further."""
    indent = len(match["indent"])
    end = re.compile(rf"^ {{0,{indent}}}\S", re.MULTILINE).search(text, match.end())
    try:
        module = ast.parse(dedent(text[match.start() : end.start() if end else len(text)]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = module.body[0] if module.body else None
    return found if isinstance(found, ast.FunctionDef) else None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Simple statements in order, those inside ``with`` and ``if`` among them."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.If, ast.Try)):
            yield from _statements(statement.body)
        else:
            yield statement


class _Reader:
    """Fills one function, statement by statement."""

    def __init__(self, function: Function, dtypes: dict[str, str]) -> None:
        self._function = function
        self._dtypes = dtypes

    def statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Return) and statement.value is not None:
            names = (n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name))
            self._function.returned.update(names)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._call(statement.value, None)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self._assign(statement.targets[0].id, statement.value)

    def _assign(self, name: str, value: ast.expr) -> None:
        function = self._function
        if isinstance(value, ast.Call):
            buffer = self._made(value)
            if buffer is None:
                self._call(value, name)
                return
            function.buffers[name] = buffer
            if value.args and isinstance(value.args[0], ast.Name):
                function.reused[name] = value.args[0].id
        elif isinstance(value, ast.Name):
            function.reused[name] = value.id
            if value.id in function.buffers:
                function.buffers[name] = function.buffers[value.id]
        elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            function.reused[name] = value.value.id

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
            known = self._function.buffers.get(name)
            dtype = known.dtype if known else self._dtypes.get(name)
            self._function.buffers[name] = _buffer(call.args[1:3], dtype_of(dtype or ""))
            return
        library = callee.startswith(_LIBRARIES)
        if callee.startswith(_NO_WORK) or not (library or _is_kernel(callee)):
            return
        self._function.sites.append(
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
            return Argument(node.id, self._function.buffers.get(node.id))
        if isinstance(node, ast.Call) and (buffer := self._made(node)):
            first = node.args[0]
            return Argument(first.id if isinstance(first, ast.Name) else None, buffer)
        text = ast.unparse(node)
        return Argument(value="" if text == "None" else text)


def _is_kernel(callee: str) -> bool:
    return callee.endswith(".run") or callee.startswith("cpp_")


def _buffer(shape: list[ast.expr], dtype: str | None) -> Buffer:
    return Buffer(_sizes(shape[0]), _sizes(shape[1]), dtype)


def _sizes(node: ast.expr) -> tuple[int | None, ...]:
    """Numbers of a tuple; None for a symbol or an expression."""
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
    values = [e.value if isinstance(e, ast.Constant) else None for e in elements]
    return tuple(v if type(v) is int and v >= 0 else None for v in values)
