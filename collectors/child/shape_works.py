"""What a step did in libraries, read from a profiler window's trace: the heaviest shapes.

Products, convolutions, attention, Fourier transforms, look-ups of rows, and what works along one
dimension (a cumulative sum, a sort), with the sizes, strides and dtypes that the step had. Of the
last three only what may have a faster way: a length with large prime factors, rows or elements that
lie apart.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from math import prod
from pathlib import Path

MOST_SHAPES = 6
MOST_TRACE_BYTES = 64 << 20

PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0, "aten::baddbmm": 1}
CONVOLUTIONS = {"aten::convolution": 0}
ATTENTION = {"aten::scaled_dot_product_attention": 0}
TRANSFORMS = {"aten::_fft_r2c": 0, "aten::_fft_c2r": 0, "aten::_fft_c2c": 0}
LOOKUPS = {"aten::index": 0, "aten::index_select": 0}
#: Operators along one dimension → the position of that argument.
ALONG = {
    **{f"aten::{name}": 1 for name in ("cumsum", "cumprod", "cummax", "cummin")},
    **{"aten::sort": 2, "aten::topk": 2, "aten::kthvalue": 2},
}
_BY_ARITHMETIC = {**PRODUCTS, **CONVOLUTIONS, **ATTENTION, **TRANSFORMS}
_OPERATORS = {**_BY_ARITHMETIC, **LOOKUPS, **ALONG}
#: Factors of a length that MKL, pocketfft and cuFFT have code of their own for, and of a fast one.
_KNOWN_FACTORS, _FAST_FACTORS = (2, 3, 5, 7, 11, 13), (2, 3, 5)
_NAMES = "|".join(_OPERATORS).encode()
_EVENT = re.compile(rb'"name": "(' + _NAMES + rb')".{0,400}?"args": (\{[^}]*\})', re.DOTALL)
_SEPARATE = b'"name": "aten::_scaled_dot_product_attention_math"'
#: As a trace names it → as torch does; of products, masks, signals and tables those that count.
DTYPES = {
    **{"float": "float32", "double": "float64", "bool": "bool"},
    **{"c10::BFloat16": "bfloat16", "c10::Half": "float16"},
    **{"long int": "int64", "int": "int32", "short int": "int16"},
    **{"signed char": "int8", "unsigned char": "uint8"},
    **{"c10::complex<float>": "complex64", "c10::complex<double>": "complex128"},
}
_DTYPES = {kind: DTYPES[kind] for kind in ("float", "c10::BFloat16", "c10::Half")}
_MASKS = {**_DTYPES, "bool": DTYPES["bool"]}
_TABLES = {**_DTYPES, "double": DTYPES["double"]}
_SIGNALS = {
    kind: DTYPES[kind]
    for kind in ("float", "double", "c10::complex<float>", "c10::complex<double>")
}

#: Operator; sizes, strides and dtypes of its operands; values of its other arguments, of attention
#: "causal" or the mask's dtype, of a transform its dimensions and the signal's lengths there, of
#: work along a dimension that dimension and what stands before it.
Work = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], str, str]


def last_traces(folder: Path, pid: int) -> Iterator[tuple[str, Path]]:
    """The last window of each stance: ``compiled-7.json.gz``, ``compiled-7-2.json.gz``."""
    for stance in ("compiled", "eager"):
        name = re.compile(rf"{stance}-{pid}(-of-\w+)?(-\d+)?\.json\.gz")
        found = [path for path in folder.glob(f"{stance}-*.json.gz") if name.fullmatch(path.name)]
        if found:
            yield stance, max(found, key=lambda path: path.stat().st_mtime)


def heaviest(trace: Path) -> dict[Work, float]:
    """The shapes with most operations in a trace, and how often a step has them."""
    works = _works(text_of(trace))
    return {**_heaviest(works), **_heaviest(works, of=ALONG)}


def of_eager(trace: Path, *, device: bool) -> dict[Work, float]:
    """What an eager trace alone has whole: attention with a mask, on a GPU that in float32, and all
    where some ran as separate operators; and look-ups in tables whose rows are scattered.

    Of attention the heaviest: in float32 it takes long next to products with more operations.
    """
    text = text_of(trace)
    separate, works = _SEPARATE in text, _works(text)
    attention = _heaviest(
        {
            work: count
            for work, count in works.items()
            if work[0] in ATTENTION
            and (separate or has_mask(work) or (device and work[3] == "float32"))
        }
    )
    return {**attention, **_heaviest(works, of=LOOKUPS)}


def _works(text: bytes) -> dict[Work, float]:
    """All shapes of a trace, and how often a step has each."""
    steps = max(1, len(set(re.findall(rb'"traceview step (\d+)"', text))))
    found: Counter[Work] = Counter()
    for match in _EVENT.finditer(text):
        work = _work(match[1].decode(), match[2])
        if work is not None:
            found[work] += 1
    return {work: count / steps for work, count in found.items()}


def _heaviest(
    works: dict[Work, float], *, of: Collection[str] = _BY_ARITHMETIC
) -> dict[Work, float]:
    """Those with most operations ``of`` these kinds, which can be compared with each other."""
    mine = [work for work in works if work[0] in of]
    heavy = sorted(mine, key=lambda work: -works[work] * _operations(work))
    return {work: works[work] for work in heavy[:MOST_SHAPES]}


def has_mask(work: Work) -> bool:
    """Attention with a mask."""
    return work[4] in _MASKS.values()


def text_of(trace: Path) -> bytes:
    """Its first 64 MiB."""
    with gzip.open(trace) as file:
        return file.read(MOST_TRACE_BYTES)


def _work(name: str, arguments: bytes) -> Work | None:
    try:
        args = json.loads(arguments)
        dims, types = args["Input Dims"], args["Input type"]
        strides, values = args["Input Strides"], args.get("Concrete Inputs", [])
        if name in TRANSFORMS or name in LOOKUPS or name in ALONG:
            size, step, kind = dims[0], strides[0], types[0]
        if name in ALONG:
            # A sort that names no order of equal values calls the one that does.
            dim = range(len(size))[int(values[ALONG[name]])]
            if 0 in size or size[dim] < 2 or step[dim] <= min(step):
                return None  # its elements lie together
            settings = json.dumps([dim, *values[1 : ALONG[name]]])
            return name, (tuple(size),), (tuple(step),), _TABLES[kind], settings
        if name in TRANSFORMS:
            over = json.loads(values[1])
            lengths = [size[dim] for dim in over]
            if name == "aten::_fft_c2r":
                lengths[-1] = int(values[3])
            if 0 in size or all(_without(n, _KNOWN_FACTORS) <= 1 for n in lengths):
                return None  # its lengths are fast ones
            settings = json.dumps([over, lengths])
            return name, (tuple(size),), (tuple(step),), _SIGNALS[kind], settings
        if name in LOOKUPS:
            rows = name == "aten::index" or values[1] == "0"
            if len(size) < 2 or 0 in size or not rows or min(step[1:]) <= step[0]:
                return None  # each row's elements lie together, or these may be no rows
            return name, (tuple(size),), (tuple(step),), _TABLES[kind], ""
        first = _OPERATORS[name]
        last = first + (3 if name in ATTENTION else 2)
        sizes = tuple(tuple(size) for size in dims[first:last])
        steps = tuple(tuple(step) for step in strides[first:last])
        kinds = {_DTYPES[kind] for kind in types[first:last]}
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    if len(kinds) != 1 or any(len(size) < 2 or not prod(size) for size in sizes):
        return None
    settings = json.dumps(values[3:9]) if name in CONVOLUTIONS else ""
    if name in ATTENTION:
        if values[7:8] == ["True"]:
            return None  # fewer heads of keys: the trial would be of something else
        settings = "causal" if values[5:6] == ["True"] else ""
        if any(dims[3:4]):
            whole = len(dims[3]) > 1 and dims[3][-2:] == [sizes[0][-2], sizes[1][-2]]
            settings = _MASKS.get(types[3], "") if whole else ""
            if not settings:
                return None
    return name, sizes, steps, kinds.pop(), settings


def _without(number: int, factors: Sequence[int]) -> int:
    """What is left of a number after these factors."""
    for factor in factors:
        while number > 1 and number % factor == 0:
            number //= factor
    return number


def fast_length(length: int) -> int:
    """The next length with small factors only, this one if it has no others.

    It is even: a real transform of an odd length can't be done as a complex one of half the length.
    """
    while length % 2 or _without(length, _FAST_FACTORS) > 1:
        length += 1
    return length


def shapes_of(work: Work) -> tuple[tuple[int, ...], ...]:
    """Sizes of the operands; of a transform that of the signal, not of half a spectrum."""
    if work[0] not in TRANSFORMS:
        return work[1]
    size = list(work[1][0])
    for dim, length in zip(*json.loads(work[4]), strict=True):
        size[dim] = length
    return (tuple(size),)


def _operations(work: Work) -> int:
    """Operations, as far as needed to compare shapes."""
    if work[0] in LOOKUPS or work[0] in ALONG:
        return prod(work[1][0])
    if work[0] in TRANSFORMS:
        (signal,) = shapes_of(work)
        return 5 * prod(signal) * max(signal).bit_length()
    name, (left, right, *_), *_ = work
    if name in CONVOLUTIONS:
        return prod(left) * prod(right) // max(1, left[1])
    return prod(left) * (right[-2] if name in ATTENTION else right[-1])
