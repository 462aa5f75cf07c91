"""Least work of generated kernels, and of the library calls in generated code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from msgspec.structs import replace

from traceview.derive.kernel_groups import Origins
from traceview.derive.limits.operators import operator_work
from traceview.derive.limits.work import AT_LEAST, AT_MOST, EXACT, Inputs, Tensor, Work
from traceview.tables import Tables
from traceview.torchtext.dtypes import size_of
from traceview.torchtext.kernel_source import Access, KernelSource, read_kernel
from traceview.torchtext.output_code import Argument as SiteArgument
from traceview.torchtext.output_code import Function, Site, library_operator, read_program

#: Keywords of ``extern_kernels.convolution`` in the order of aten::convolution's arguments.
_CONVOLUTION = ("bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups")


class GeneratedCode:
    """Sources and call sites of generated kernels by pass, graph and name; each is read once."""

    def __init__(self, tables: Tables) -> None:
        self._origins = Origins(tables)
        self._texts: dict[tuple[str, str], list[str]] = {}
        self._sources: dict[str, KernelSource | None] = {}
        self._functions: dict[str, list[Function]] = {}
        for row in tables["graphs"].iter_rows(named=True):
            if row["kind"] == "output_code" and row["text"]:
                for place in (row["graph_key"], row["compile_id"]):
                    if place:
                        self._texts.setdefault((row["pass"], place), []).append(row["text"])

    def source(self, pass_name: str, name: str, *places: str | None) -> KernelSource | None:
        """What kernel ``name`` of a graph reads and writes; None if its source is not known."""
        row = self._origins.of(pass_name, name, *places)
        text = row and row["source_code"]
        if not text:
            return None
        if text not in self._sources:
            self._sources[text] = read_kernel(text)
        return self._sources[text]

    def functions(self, pass_name: str, *places: str | None) -> list[Function]:
        """``call()`` and its partitions of the first of ``places`` that one module alone has."""
        for place in places:
            texts = self._texts.get((pass_name, place), []) if place else []
            if len(texts) == 1:
                if texts[0] not in self._functions:
                    self._functions[texts[0]] = read_program(texts[0])
                return self._functions[texts[0]]
        return []

    def sites(self, pass_name: str, name: str, *places: str | None) -> list[Site]:
        """All calls of kernel ``name`` in a graph."""
        functions = self.functions(pass_name, *places)
        return [site for f in functions for site in f.sites if site.kernel == name]


def kernel_work(source: KernelSource, tensors: Sequence[Tensor | None]) -> Work | None:
    """Bytes of every pointer's places, at most its whole tensor; ``tensors`` as the call has them.

    What is read through a loaded index counts as if all indices were different.
    """
    moved, kind = 0, EXACT
    largest: tuple[int, str | None] = (-1, None)
    for pointer in source.pointers:
        tensor = tensors[pointer.position] if pointer.position < len(tensors) else None
        dtype = pointer.dtype or (tensor.dtype if tensor else None)
        for access in (pointer.read, pointer.written):
            if access is None:
                continue
            places = touched(access, tensor)
            if places is None or dtype is None:
                return None
            moved += places * size_of(dtype)
            kind = AT_MOST if access.indexed else kind
            largest = max(largest, (places * size_of(dtype), dtype), key=lambda found: found[0])
    flops = None
    if source.template and source.product is not None:
        m, n, k = source.product
        written = [
            tensors[p.position] for p in source.pointers if p.written and p.position < len(tensors)
        ]
        # A batch shows in the size of what is written.
        most = max((prod(t.dims) for t in written if t is not None), default=0)
        batch = most // (m * n) if m * n and most % (m * n) == 0 else 1
        flops = 2 * m * n * k * max(1, batch)
    return Work(moved, kind, flops, largest[1])


def touched(access: Access, tensor: Tensor | None) -> int | None:
    """Places that are moved: at most those of the whole tensor; None if neither is known."""
    known = [n for n in (access.total, tensor.numel if tensor else None) if n is not None]
    return min(known) if known else None


def site_tensors(arguments: Sequence[SiteArgument]) -> list[Tensor | None]:
    """Tensors of a call by position; None for a number, a symbol, or an unknown dtype.

    The result of a fallback has no dtype in the code: it is taken for that of its neighbours.
    """
    dtypes = [a.buffer.dtype for a in arguments if a.buffer and a.buffer.dtype]
    common = next((d for d in dtypes if "float" in d), None)
    found: list[Tensor | None] = []
    for argument in arguments:
        buffer, tensor = argument.buffer, None
        dtype = buffer and (buffer.dtype or common)
        if buffer and dtype and None not in buffer.dims:
            dims = tuple(d for d in buffer.dims if d is not None)
            strides = tuple(s for s in buffer.strides if s is not None)
            tensor = Tensor(dims, dtype, strides if len(strides) == len(dims) else None)
        found.append(tensor)
    return found


def library_work(site: Site) -> Work | None:
    """Work of a library call of generated code, by the formula of its operator."""
    namespace, _, name = library_operator(site.kernel).partition(".")
    arguments = [*site.arguments]
    if name == "convolution":
        arguments += [site.keywords.get(key, SiteArgument()) for key in _CONVOLUTION]
    values = (a.value.replace("(", "[").replace(",)", "]").replace(")", "]") for a in arguments)
    inputs = Inputs(tuple(site_tensors(arguments)), tuple(values))
    work = operator_work(f"{namespace}::{name}", inputs)
    lost = any(a.name and t is None for a, t in zip(arguments, inputs.arguments, strict=True))
    return replace(work, bytes_kind=AT_LEAST) if work and lost else work


def site_work(site: Site, source: KernelSource | None) -> Work | None:
    """Work of one call in generated code; ``source`` is that of its kernel."""
    if site.library:
        return library_work(site)
    return kernel_work(source, site_tensors(site.arguments)) if source else None


def common_work(sites: Sequence[Site], source: KernelSource) -> Work | None:
    """Work that all calls of one kernel have in common; None where they differ."""
    found: Mapping[Work | None, None] = dict.fromkeys(site_work(site, source) for site in sites)
    return next(iter(found)) if len(found) == 1 else None
