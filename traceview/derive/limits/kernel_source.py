"""A generated kernel's source, read as text: which pointers it reads and writes, how much of each.

What a pointer moves is the sum over its different index expressions of the places each can name,
as in torch/_inductor/scheduler.py (``get_read_write_buffer_accesses``); whoever knows the tensor
takes no more than that. The shapes are those of torch/_inductor/codegen/triton.py and cpp.py,
torch 2.6 to 2.13:

    def triton_red_fused_sum_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, …):
        xnumel = 512
        x0 = (xindex % 16)
        tmp0 = tl.load(in_ptr0 + (r0_1 + 256*x0), xmask, …)

    extern "C"  void  kernel(float* in_out_ptr0, const float* in_ptr0, const int64_t ks0)
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(256L); x0+=…)
            auto tmp0 = …::loadu(in_ptr0 + static_cast<int64_t>(x1 + 512L*x0), …);
"""

from __future__ import annotations

import re

import msgspec

from traceview.derive.limits.dtypes import dtype_of
from traceview.derive.limits.index_ranges import CppRanges, Ranges, TritonRanges

#: The functions that a scan combines with stand before the kernel.
_TRITON_HEAD = re.compile(
    r"^def (?!_triton_helper_fn)(\w+)\((?P<params>[^)]{0,20000})\):", re.MULTILINE
)
_CPP_HEAD = re.compile(r'extern "C"[^\n(]{0,200}\(\s*(?P<params>[^)]{0,20000})\)\s*\{')
_SIGNATURE = re.compile(r"'(\w+)': '\*(?:const )?(\w+)'")
_CPP_PARAM = re.compile(
    r"^(?P<const>const )?(?P<type>[\w: ]+?)\s*(?P<pointer>\*)?\s*(?:__restrict__ )?(?P<name>\w+)$"
)
_LONGEST_PARAM = 200
_LONGEST_INDEX = 2000
_POINTER = re.compile(r"^(?:in_out_ptr|in_ptr|out_ptr)\d+$")
_TRITON_ACCESS = re.compile(
    r"\btl\.(?P<how>load|store|atomic_\w+)\((?P<name>\w+) \+ (?P<open>\()?(?P<plain>\w+)?"
)
_CPP_ACCESS = re.compile(
    r"(?P<before>\.store\(|atomic_add(?:_vec<[^>]{0,100}>)?\(&?)?"
    r"\b(?P<name>(?:in_out_ptr|in_ptr|out_ptr)\d+)"
    r"(?P<link>\[| \+ )static_cast<int64_t>(?P<open>\()"
)
_CPP_ALIAS = re.compile(r"^\s*auto (\w+) = ((?:in_out|in|out)_ptr\d+);", re.MULTILINE)
_ASSIGNED = re.compile(r"\]\s*[-+*]?=[^=]")
_SIZE = re.compile(
    r"^ +(?:const(?:expr)? int64_t )?(?P<name>[MNK]) = "
    r"(?:static_cast<int64_t>\()?(?P<value>\d{1,15})L?\)?;?$",
    re.MULTILINE,
)
_TEMPLATE = re.compile(r"^\s+A = arg_A$|\barg_[A-Z]\b|CppMicroGemm|_gemm_template", re.MULTILINE)


class Access(msgspec.Struct):
    """Places that a kernel reads or writes through one pointer: index expression → how many.

    None: an expression whose range is not known.
    """

    places: dict[str, int | None] = {}
    indexed: bool = False  # through a value that was loaded itself

    @property
    def total(self) -> int | None:
        """All places, those that two expressions share counted twice; None if not known."""
        known = [n for n in self.places.values() if n is not None]
        return sum(known) if known and len(known) == len(self.places) else None


class Pointer(msgspec.Struct):
    """One pointer argument; ``position`` is that in the call."""

    name: str
    position: int
    dtype: str | None
    read: Access | None = None
    written: Access | None = None


class KernelSource(msgspec.Struct, frozen=True):
    """Pointers in order; ``product`` is (M, N, K) of a GEMM template with these sizes in it."""

    pointers: tuple[Pointer, ...]
    template: bool = False
    product: tuple[int, int, int] | None = None


def read_kernel(source: str) -> KernelSource | None:
    """What ``source`` (Triton or C++) moves; None for what is neither."""
    triton = _TRITON_HEAD.search(source)
    head = triton or _CPP_HEAD.search(source)
    if head is None:
        return None
    pointers = _triton_pointers(source, head) if triton else _cpp_pointers(head)
    body = source[head.end() :]
    if _TEMPLATE.search(body):
        return KernelSource(_whole(pointers, body), template=True, product=_product(body))
    known = {p.name: p for p in pointers if _POINTER.match(p.name)}
    if triton:
        _scan_triton(body, known)
    else:
        for alias, name in _CPP_ALIAS.findall(body):  # the same buffer by another name
            if name in known:
                known[alias] = known[name]
        _scan_cpp(body, known)
    return KernelSource(_whole([p for p in pointers if known.get(p.name) is p], body))


def _triton_pointers(source: str, head: re.Match[str]) -> list[Pointer]:
    dtypes = dict(_SIGNATURE.findall(source[: head.start()]))
    names = [part.split(":")[0].split("=")[0].strip() for part in head["params"].split(",")]
    return [
        Pointer(name, at, dtype_of(dtypes[name])) for at, name in enumerate(names) if name in dtypes
    ]


def _cpp_pointers(head: re.Match[str]) -> list[Pointer]:
    parts = [" ".join(part.split()) for part in head["params"].split(",")]
    found = [_CPP_PARAM.match(part) if len(part) < _LONGEST_PARAM else None for part in parts]
    pointers = []
    for at, param in enumerate(found):
        if param is not None and param["pointer"]:
            pointer = Pointer(param["name"], at, dtype_of(param["type"].strip()))
            if not _POINTER.match(pointer.name):  # a template's X, W, Y: const is what is read
                pointer.read = Access({"": None}) if param["const"] else None
                pointer.written = None if param["const"] else Access({"": None})
            pointers.append(pointer)
    return pointers


def _whole(pointers: list[Pointer], body: str) -> tuple[Pointer, ...]:
    """Pointers whose use could not be read count as their names say, with all that they hold."""
    words = set(re.findall(r"\w+", body))
    for pointer in pointers:
        unread = pointer.read is None and pointer.written is None
        if unread and pointer.name in words:  # a tensor that is also written may come twice
            if pointer.name.startswith(("in_", "arg_")):
                pointer.read = Access({"": None})
            if "out_ptr" in pointer.name:
                pointer.written = Access({"": None})
    return tuple(pointers)


def _product(body: str) -> tuple[int, int, int] | None:
    sizes = {match["name"]: int(match["value"]) for match in _SIZE.finditer(body)}
    return (sizes["M"], sizes["N"], sizes["K"]) if sizes.keys() == set("MNK") else None


def _scan_triton(body: str, known: dict[str, Pointer]) -> None:
    ranges = TritonRanges()
    for line in body.splitlines():
        ranges.line(line)
        for match in _TRITON_ACCESS.finditer(line):
            if pointer := known.get(match["name"]):
                at = match.end("open") if match["open"] else -1
                index = _balanced(line, at) if match["open"] else match["plain"] or ""
                _count(pointer, match["how"], index, ranges)


def _scan_cpp(body: str, known: dict[str, Pointer]) -> None:
    ranges = CppRanges()
    for line in body.splitlines():
        ranges.line(line)
        for match in _CPP_ACCESS.finditer(line):
            if pointer := known.get(match["name"]):
                index = _balanced(line, match.end("open"))
                after = line[match.end("open") + len(index) + 1 :]
                stored = match["link"] == "[" and _ASSIGNED.match(after)
                how = "atomic" if "atomic" in (match["before"] or "") else ""
                how = how or ("store" if match["before"] or stored else "load")
                _count(pointer, how, index, ranges)


def _count(pointer: Pointer, how: str, index: str, ranges: Ranges) -> None:
    """One access. What a kernel stored itself it need not fetch: a load after a store is free."""
    places, indexed = ranges.places(index)
    stored = how != "load"
    if stored:
        pointer.written = pointer.written or Access()
        _add(pointer.written, index, places, indexed)
    if how.startswith("atomic") or (not stored and pointer.written is None):
        pointer.read = pointer.read or Access()
        _add(pointer.read, index, places, indexed)


def _add(access: Access, index: str, places: int | None, indexed: bool) -> None:
    before = access.places.get(index)
    access.places[index] = places if before is None or places is None else max(before, places)
    access.indexed |= indexed


def _balanced(text: str, at: int) -> str:
    """``text`` from ``at`` up to the parenthesis that closes the one before ``at``."""
    depth = 1
    for end in range(at, min(len(text), at + _LONGEST_INDEX)):
        depth += (text[end] == "(") - (text[end] == ")")
        if not depth:
            return text[at:end]
    return text[at : at + _LONGEST_INDEX]
