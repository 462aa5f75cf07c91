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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from traceview.torchtext.dtypes import dtype_of

#: In a Triton kernel's signature and casts, and in C++.
_FLOAT64 = re.compile(r"\bfp64\b|\bfloat64\b|\bdouble\b")
#: The functions that a scan combines with stand before the kernel.
TRITON_HEAD = re.compile(
    r"^def (?!_triton_helper_fn)(\w+)\((?P<params>[^)]{0,20000})\):", re.MULTILINE
)
_CPP_HEAD = re.compile(r'extern "C"[^\n(]{0,200}\(\s*(?P<params>[^)]{0,20000})\)\s*\{')
_SIGNATURE = re.compile(r"'(\w+)': '\*(?:const )?(\w+)'")
_FLOAT64_ARGUMENT = re.compile(r"'(\w+)': 'fp64'")
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
_CPP_ALIAS = re.compile(r"^[^\S\n]*auto (\w+) = ((?:in_out|in|out)_ptr\d+);", re.MULTILINE)
_ASSIGNED = re.compile(r"\]\s*[-+*]?=[^=]")
_SIZE = re.compile(
    r"^ +(?:const(?:expr)? int64_t )?(?P<name>[MNK]) = "
    r"(?:static_cast<int64_t>\()?(?P<value>\d{1,15})L?\)?;?$",
    re.MULTILINE,
)
_TEMPLATE = re.compile(
    r"^[^\S\n]+A = arg_A$|\barg_[A-Z]\b|CppMicroGemm|_gemm_template", re.MULTILINE
)


#: Ranges of index variables.
_LOADED = re.compile(r"\btmp\d+\b")
NUMEL = re.compile(
    r"^[^\S\n]+(?P<prefix>[xyz]|r\d?_?)numel = (?P<value>\d{1,18})\s*$", re.MULTILINE
)
_VARIABLE = re.compile(r"^\s+(?P<name>[xyz]\d+|r\d?_?\d+) = (?P<value>.{1,300})$")
_INDEX = re.compile(r"\b(?P<prefix>[xyz]|r\d_|r)index\b")
_MODULO = re.compile(r"% (\d{1,18})\)*$")
_DIVIDED = re.compile(r"index ?// ?(\d{1,18})\)*$")
_WHOLE = re.compile(r"\(*(?:[xyz]|r\d_|r)index\)*$")
INDEX_NAME = re.compile(r"\b(?:[xyz]\d+|r\d_\d+|r\d+)\b")
_UNKNOWN = re.compile(r"\b(?:ks\d+|s\d+|u\d+|[xyzr]\w*index|[xyzr]\w*offset|load_seed_offset)\b")
_LOOP = re.compile(
    r"for\s*\(int64_t (?P<name>\w+)=static_cast<int64_t>\((?P<low>\d{1,18})L?\); (?P=name)<"
    r"static_cast<int64_t>\((?:(?P<high>\d{1,18})L?\)|.)"
)
_DEEPEST = 64

#: What a Triton kernel's arithmetic is counted by.
JIT = "@triton.jit"
_NUMELS = re.compile(r"\b((?:[xyz]|r\d?_?)numel)\b")
_OPERATION = re.compile(r"^[^\S\n]+\w+ = ", re.MULTILINE)
_COSTLY = re.compile(
    r"libdevice\.|tl_math\.|tl\.(?:sigmoid|exp|log|sqrt|rsqrt|sin|cos|erf)| // ?| % | / "
)
INSTRUCTIONS_EACH = 20
FUNCTION = re.compile(r"\b(?:libdevice|tl_math)\.(\w+)\(")
#: A number in a variable, or a vector of one; and what is compared with it.
_NUMBER = re.compile(
    r"\b(?P<name>tmp\d+) = (?:(?P<number>static_cast<int(?:32|64)_t>\(\d{1,18}L?\);"
    r"|tl\.full\(\[[\d, ]{0,20}\], \d{1,18}, tl\.int(?:32|64)\))"
    r"|(?:at::vec::Vector\w{1,8}<[^>]{1,20}>\((?P<of>tmp\d+)\);)?)"
)
_TEST = re.compile(r"\btmp\d+ (?P<sign>==|>=|<) (?P<number>tmp\d+)\b")
#: Work whose instructions the source does not show.
_HIDDEN = re.compile(
    r"rand|sort|scan|bucketize|philox|welford|atomic|topk|\bwhile\b", re.IGNORECASE
)


@dataclass(slots=True)
class Access:
    """Places that a kernel reads or writes through one pointer: index expression → how many.

    None: an expression whose range is not known.
    """

    places: dict[str, int | None] = field(default_factory=dict)
    indexed: bool = False  # through a value that was loaded itself

    @property
    def total(self) -> int | None:
        """All places, those that two expressions share counted twice; None if not known."""
        known = [n for n in self.places.values() if n is not None]
        return sum(known) if known and len(known) == len(self.places) else None

    def add(self, index: str, places: int | None, *, indexed: bool) -> None:
        """One more access."""
        before = self.places.get(index)
        self.places[index] = places if before is None or places is None else max(before, places)
        self.indexed |= indexed


@dataclass(slots=True)
class Pointer:
    """One pointer argument; ``position`` is that in the call."""

    name: str
    position: int
    dtype: str | None
    read: Access | None = None
    written: Access | None = None

    def count(self, how: str, index: str, places: int | None, *, indexed: bool) -> None:
        """One access. What a kernel stored itself it need not fetch: a later load is free."""
        stored = how != "load"
        if stored:
            self.written = self.written or Access()
            self.written.add(index, places, indexed=indexed)
        if how.startswith("atomic") or (not stored and self.written is None):
            self.read = self.read or Access()
            self.read.add(index, places, indexed=indexed)


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Pointers in order; ``product`` is (M, N, K) of a GEMM template with these sizes in it."""

    pointers: tuple[Pointer, ...]
    template: bool = False
    product: tuple[int, int, int] | None = None


def read_kernel(source: str) -> KernelSource | None:
    """What ``source`` (Triton or C++) moves; None for what is neither."""
    triton = TRITON_HEAD.search(source)
    head = triton or _CPP_HEAD.search(source)
    if head is None:
        return None
    params = head["params"].split(",")
    if triton:
        dtypes = dict(_SIGNATURE.findall(source[: head.start()]))
        names = [part.split(":")[0].split("=")[0].strip() for part in params]
        pointers = [
            Pointer(name, at, dtype_of(dtypes[name]))
            for at, name in enumerate(names)
            if name in dtypes
        ]
    else:
        pointers = []
        for at, text in enumerate(" ".join(part.split()) for part in params):
            param = _CPP_PARAM.match(text) if len(text) < _LONGEST_PARAM else None
            if param is not None and param["pointer"]:
                given = Pointer(param["name"], at, dtype_of(param["type"].strip()))
                if not _POINTER.match(given.name):  # a template's X, W, Y: const is what is read
                    given.read = Access({"": None}) if param["const"] else None
                    given.written = None if param["const"] else Access({"": None})
                pointers.append(given)
    body = source[head.end() :]
    if _TEMPLATE.search(body):
        sizes = {match["name"]: int(match["value"]) for match in _SIZE.finditer(body)}
        product = (sizes["M"], sizes["N"], sizes["K"]) if sizes.keys() == set("MNK") else None
        return KernelSource(_whole(pointers, body), template=True, product=product)
    known = {p.name: p for p in pointers if _POINTER.match(p.name)}
    if not triton:
        for alias, name in _CPP_ALIAS.findall(body):  # the same buffer by another name
            if name in known:
                known[alias] = known[name]
    code: TritonCode | CppCode = TritonCode() if triton else CppCode()
    for line in body.splitlines():
        code.line(line)
        for name, how, index in code.accesses(line):
            if pointer := known.get(name):
                places, indexed = code.places(index)
                pointer.count(how, index, places, indexed=indexed)
    return KernelSource(_whole([p for p in pointers if known.get(p.name) is p], body))


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


def _balanced(text: str, at: int) -> str:
    """``text`` from ``at`` up to the parenthesis that closes the one before ``at``."""
    depth = 1
    for end in range(at, min(len(text), at + _LONGEST_INDEX)):
        depth += (text[end] == "(") - (text[end] == ")")
        if not depth:
            return text[at:end]
    return text[at : at + _LONGEST_INDEX]


class TritonCode:
    """Accesses, and places by the ranges of index variables.

    ``xnumel = 512``, ``x1 = xindex // 16``, ``x0 = (xindex % 16)``, ``r0_2 = r0_index``.
    """

    def __init__(self) -> None:
        self._numels: dict[str, int] = {}
        self._variables: dict[str, tuple[str, int | None]] = {}

    def accesses(self, line: str) -> Iterator[tuple[str, str, str]]:
        """Pointer, how (``load``, ``store``, ``atomic_add``) and index expression of each."""
        for match in _TRITON_ACCESS.finditer(line):
            opened = match["open"]
            index = _balanced(line, match.end("open")) if opened else match["plain"] or ""
            yield match["name"], match["how"], index

    def line(self, line: str) -> None:
        """Take note of what ``line`` says of ranges."""
        if match := NUMEL.match(line):
            self._numels[match["prefix"]] = int(match["value"])
            return
        match = _VARIABLE.match(line)
        index = _INDEX.search(match["value"]) if match else None
        if match and index:
            prefix = index["prefix"]
            self._variables[match["name"]] = (prefix, self._range(match["value"], prefix))

    def _range(self, value: str, prefix: str) -> int | None:
        if modulo := _MODULO.search(value):
            return int(modulo[1])
        numel = self._numels.get(prefix)
        if numel is None or _WHOLE.match(value.strip()):
            return numel
        divided = _DIVIDED.search(value)
        return -(-numel // int(divided[1])) if divided and int(divided[1]) else None

    def over(self, name: str) -> frozenset[str]:
        """The dimension that an index variable is of."""
        return frozenset({self._variables[name][0]} if name in self._variables else ())

    def size(self, dimensions: Iterable[str]) -> int | None:
        """Elements of these dimensions together; None if one is not known."""
        sizes = [self._numels.get(each) for each in dimensions]
        return None if None in sizes else prod(size for size in sizes if size is not None)

    def values(self, names: Iterable[str], checked: Mapping[str, int]) -> int | None:
        """How many values index variables, and loaded indices with their range, can have."""
        own = [name for name in names if name not in checked]
        places = self.places(" + ".join(own))[0] if own else 1
        return places and places * prod(checked[name] for name in names if name in checked)

    def places(self, index: str) -> tuple[int | None, bool]:
        """Places that ``index`` can name (None: not known), and whether a loaded value decides."""
        if _LOADED.search(index):
            return prod(self._numels.values()) if self._numels else None, True
        by_prefix: dict[str, list[int | None]] = {}
        for name in set(INDEX_NAME.findall(index)):
            prefix, size = self._variables.get(name, ("", None))
            by_prefix.setdefault(prefix, []).append(size)
        if _UNKNOWN.search(index) or any(None in sizes for sizes in by_prefix.values()):
            return None, False
        total = 1
        for prefix, sizes in by_prefix.items():
            most = self._numels.get(prefix)
            together = prod(size for size in sizes if size is not None)
            total *= together if most is None else min(most, together)
        return total, False


class CppCode:
    """The same; ranges are those of the loops that are open. A brace closes them."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str, int | None]] = []
        self._depth = 0

    def accesses(self, line: str) -> Iterator[tuple[str, str, str]]:
        for match in _CPP_ACCESS.finditer(line):
            index = _balanced(line, match.end("open"))
            after = line[match.end("open") + len(index) + 1 :]
            stored = match["before"] or (match["link"] == "[" and _ASSIGNED.match(after))
            how = "atomic" if "atomic" in (match["before"] or "") else ""
            yield match["name"], how or ("store" if stored else "load"), index

    def line(self, line: str) -> None:
        if match := _LOOP.search(line):
            high = match["high"]
            size = None if high is None else max(0, int(high) - int(match["low"]))
            if len(self._open) < _DEEPEST:
                self._open.append((self._depth, match["name"], size))
        for sign in re.findall(r"[{}]", line):
            self._depth += 1 if sign == "{" else -1
            if sign == "}":
                self._open = [loop for loop in self._open if loop[0] < self._depth]

    def places(self, index: str) -> tuple[int | None, bool]:
        indexed = bool(_LOADED.search(index))
        known = {name: size for _, name, size in self._open}
        if indexed:
            used = list(known.values())
        else:
            used = [known.get(name) for name in set(re.findall(r"\bx\d+\w*\b", index))]
            if _UNKNOWN.search(index):
                used.append(None)
        sizes = [size for size in used if size is not None]
        return (prod(sizes) if len(sizes) == len(used) else None), indexed


def uses_float64(source: str) -> bool:
    """Whether a kernel computes in float64, or reads or writes it."""
    return _FLOAT64.search(source) is not None


def float64_arguments(source: str) -> list[str]:
    """Numbers that a Triton kernel takes as float64, by its signature in ``triton_meta``.

    A user's kernel gets Python floats that way (``signature_of``, _inductor/codegen/
    triton_utils.py); Triton's own launch passes them as float32.
    """
    return _FLOAT64_ARGUMENT.findall(source.partition(JIT)[0])


def instructions(source: str) -> int | None:
    """Instructions of one run of a Triton kernel, all elements together, roughly.

    Functions and divisions count as several. None where a size or part of the work isn't shown.
    """
    body = source.rpartition(JIT)[2]
    sizes = {m["prefix"]: int(m["value"]) for m in NUMEL.finditer(body)}
    wanted = {name.removesuffix("numel") for name in _NUMELS.findall(body.partition(":\n")[0])}
    if not sizes or wanted - sizes.keys() or _HIDDEN.search(body):
        return None
    each = len(_OPERATION.findall(body)) + INSTRUCTIONS_EACH * len(_COSTLY.findall(body))
    return each * prod(sizes.values())


def index_tests(source: str) -> Counter[str]:
    """How often ``source`` (Triton or C++) compares with a number that it holds: ``==``, ``<``, ….

    So it chooses between slices, whose places are the numbers.

    >>> text = "tmp1 = tl.full([1], 87, tl.int32)\\n tmp2 = tmp0 == tmp1\\n tmp4 = tmp3 == tmp0"
    >>> index_tests(text)
    Counter({'==': 1})
    """
    found, numbers = Counter[str](), set[str]()
    for line in source.splitlines():
        if made := _NUMBER.search(line):
            if made["number"] or made["of"] in numbers:
                numbers.add(made["name"])
            else:
                numbers.discard(made["name"])
        if (test := _TEST.search(line)) and test["number"] in numbers:
            found[test["sign"]] += 1
    return found


@dataclass(frozen=True, slots=True)
class TritonCalls:
    """Functions that a Triton kernel's source calls and how often, and the values it computes."""

    functions: dict[str, int]
    operations: int
    float64: bool


def triton_calls(source: str) -> TritonCalls | None:
    """What Triton ``source`` computes; None if it is none, most calls first."""
    body = source.rpartition(JIT)[2]
    if JIT not in source:
        return None
    found = Counter(FUNCTION.findall(body))
    return TritonCalls(
        dict(found.most_common()), len(_OPERATION.findall(body)), "tl.float64" in body
    )


@dataclass(frozen=True, slots=True)
class Repeated:
    """A function that one run of a kernel evaluates ``evaluations`` times for ``distinct`` values.

    ``scalar``: most of them one element at a time; ``looked_up``: read at places that were loaded;
    ``parts``: for all parts of a ``torch.cat`` at each of its elements; ``formulas``: how many
    operators in eager these are.
    """

    function: str
    evaluations: int
    distinct: int
    scalar: bool
    looked_up: bool = False
    parts: bool = False
    formulas: int = 1
