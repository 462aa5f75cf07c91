"""The step's own products and convolutions timed both ways, when the script has ended.

What another dtype, TF32, another memory format or another backend of attention saves depends on
the shapes: a product of 16 rows gains nothing by arithmetic that is four times faster; and a CPU
without instructions for float16 may take 30 times as long for a product in it. The shapes
are read from the last profiler window's trace, the largest ones (by operations) are run again on
random data as they are and every way there is, in turns: one ``shape_trial`` event each. Attention
is whole in the eager window's trace only: compiled code calls a backend, or separate operators. It
is timed where it ran as separate operators, where it is in float32 on a GPU, and where it has a
mask that is a causal one (`masks`), against ``is_causal=True``.
A product on a GPU is timed with rows that begin at multiples of 16 bytes, too, where they do not.
A Fourier transform is timed where its length has a factor that libraries have no code for, against
the next length without one. Rows that are looked up are timed where a row's elements lie apart, at
random places, against a table whose rows lie together; they too are in the eager window's trace
only, since compiled code looks up in kernels of its own.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import cycle
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from .ceilings import free_bytes
from .masks import Masks
from .recorder import Recorder

BUDGET_S = 2.0
MOST_SHAPES = 6
MOST_TRACE_BYTES = 64 << 20
ROUNDS = 5
AS_IT_IS = "as it is"
IS_CAUSAL = "is_causal=True"
ALIGNED = "aligned"
_ALIGNMENT = 16  # bytes that libraries' fast kernels load at once
_BATCH_S = 1e-3  # calls that are shorter are timed together
_MOST_CALLS = 200

_PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0, "aten::baddbmm": 1}
_CONVOLUTIONS = {"aten::convolution": 0}
_ATTENTION = {"aten::scaled_dot_product_attention": 0}
_TRANSFORMS = {"aten::_fft_r2c": 0, "aten::_fft_c2r": 0, "aten::_fft_c2c": 0}
_LOOKUPS = {"aten::index": 0, "aten::index_select": 0}
#: Each look-up has other rows than the last ones: a cache would have those.
_MOST_ROWS, _BATCHES = 4096, 64
_OPERATORS = {**_PRODUCTS, **_CONVOLUTIONS, **_ATTENTION, **_TRANSFORMS, **_LOOKUPS}
#: Factors of a length that MKL, pocketfft and cuFFT have code of their own for, and of a fast one.
_KNOWN_FACTORS, _FAST_FACTORS = (2, 3, 5, 7, 11, 13), (2, 3, 5)
_NAMES = "|".join(_OPERATORS).encode()
_EVENT = re.compile(rb'"name": "(' + _NAMES + rb')".{0,400}?"args": (\{[^}]*\})', re.DOTALL)
_SEPARATE = b'"name": "aten::_scaled_dot_product_attention_math"'
_DTYPES = {"float": "float32", "c10::BFloat16": "bfloat16", "c10::Half": "float16"}
_MASKS = {**_DTYPES, "bool": "bool"}
_SIGNALS = {
    **{"float": "float32", "double": "float64"},
    **{"c10::complex<float>": "complex64", "c10::complex<double>": "complex128"},
}
_TABLES = {**_DTYPES, "double": "float64"}
_BACKENDS = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH")

#: Operator; sizes, strides and dtypes of its operands; values of its other arguments, of attention
#: "causal" or the mask's dtype, of a transform its dimensions and the signal's lengths there.
Work = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], str, str]
Act = Callable[[], object]


def write_shape_trials(torch: Any, recorder: Recorder, masks: Masks, *, device: bool) -> None:
    """Time the step's heaviest shapes for about 2 s."""
    deadline = time.monotonic() + BUDGET_S
    traces = dict(_last_traces(recorder.raw / "profile", recorder.pid))
    works = next(filter(None, map(heaviest, traces.values())), {})
    if "eager" in traces:
        works = {**of_eager(traces["eager"], device=device), **works}
    name = f"cuda:{torch.cuda.current_device()}" if device else "cpu"
    with torch.no_grad(), torch.autocast("cuda" if device else "cpu", enabled=False):
        for work, count in works.items():
            if _has_mask(work):
                queries, keys = (size[-2] for size in work[1][:2])
                if not masks.are_causal(queries, keys, work[4]):
                    continue
            if time.monotonic() >= deadline:
                recorder.note("trials of shapes", f"the time limit of {BUDGET_S:.0f} s was reached")
                return
            with suppress(NotImplementedError):
                for way, seconds in _timed(torch, work, device, deadline):
                    recorder.write(
                        "shape_trial",
                        device=name,
                        op=work[0],
                        shape=", ".join("x".join(map(str, size)) for size in _shapes(work)),
                        dtype=work[3],
                        count=count,
                        way=way,
                        value=seconds * 1e6,
                        clock="device" if device else "host",
                    )


def _last_traces(folder: Path, pid: int) -> Iterator[tuple[str, Path]]:
    """The last window of each stance: ``compiled-7.json.gz``, ``compiled-7-2.json.gz``."""
    for stance in ("compiled", "eager"):
        name = re.compile(rf"{stance}-{pid}(-of-\w+)?(-\d+)?\.json\.gz")
        found = [path for path in folder.glob(f"{stance}-*.json.gz") if name.fullmatch(path.name)]
        if found:
            yield stance, max(found, key=lambda path: path.stat().st_mtime)


def heaviest(trace: Path) -> dict[Work, float]:
    """The shapes with most operations in a trace, and how often a step has them."""
    return _heaviest(_works(_text(trace)))


def of_eager(trace: Path, *, device: bool) -> dict[Work, float]:
    """What an eager trace alone has whole: attention with a mask, on a GPU that in float32, and all
    where some ran as separate operators; and look-ups in tables whose rows are scattered.

    Of attention the heaviest: in float32 it takes long next to products with more operations.
    """
    text = _text(trace)
    separate, works = _SEPARATE in text, _works(text)
    attention = _heaviest(
        {
            work: count
            for work, count in works.items()
            if work[0] in _ATTENTION
            and (separate or _has_mask(work) or (device and work[3] == "float32"))
        }
    )
    return {**attention, **_heaviest(works, lookups=True)}


def _works(text: bytes) -> dict[Work, float]:
    """All shapes of a trace, and how often a step has each."""
    steps = max(1, len(set(re.findall(rb'"traceview step (\d+)"', text))))
    found: Counter[Work] = Counter()
    for match in _EVENT.finditer(text):
        work = _work(match[1].decode(), match[2])
        if work is not None:
            found[work] += 1
    return {work: count / steps for work, count in found.items()}


def _heaviest(works: dict[Work, float], *, lookups: bool = False) -> dict[Work, float]:
    """Those with most operations: of look-ups, or of all others."""
    mine = [work for work in works if (work[0] in _LOOKUPS) == lookups]
    heavy = sorted(mine, key=lambda work: -works[work] * _operations(work))
    return {work: works[work] for work in heavy[:MOST_SHAPES]}


def _has_mask(work: Work) -> bool:
    """Attention with a mask."""
    return work[4] in _MASKS.values()


def _text(trace: Path) -> bytes:
    with gzip.open(trace) as file:
        return file.read(MOST_TRACE_BYTES)


def _work(name: str, arguments: bytes) -> Work | None:
    try:
        args = json.loads(arguments)
        dims, types = args["Input Dims"], args["Input type"]
        strides, values = args["Input Strides"], args.get("Concrete Inputs", [])
        if name in _TRANSFORMS or name in _LOOKUPS:
            size, step, kind = dims[0], strides[0], types[0]
        if name in _TRANSFORMS:
            over = json.loads(values[1])
            lengths = [size[dim] for dim in over]
            if name == "aten::_fft_c2r":
                lengths[-1] = int(values[3])
            if 0 in size or all(_without(n, _KNOWN_FACTORS) <= 1 for n in lengths):
                return None  # its lengths are fast ones
            settings = json.dumps([over, lengths])
            return name, (tuple(size),), (tuple(step),), _SIGNALS[kind], settings
        if name in _LOOKUPS:
            rows = name == "aten::index" or values[1] == "0"
            if len(size) < 2 or 0 in size or not rows or min(step[1:]) <= step[0]:
                return None  # each row's elements lie together, or these may be no rows
            return name, (tuple(size),), (tuple(step),), _TABLES[kind], ""
        first = _OPERATORS[name]
        last = first + (3 if name in _ATTENTION else 2)
        sizes = tuple(tuple(size) for size in dims[first:last])
        steps = tuple(tuple(step) for step in strides[first:last])
        kinds = {_DTYPES[kind] for kind in types[first:last]}
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    if len(kinds) != 1 or any(len(size) < 2 or not prod(size) for size in sizes):
        return None
    settings = json.dumps(values[3:9]) if name in _CONVOLUTIONS else ""
    if name in _ATTENTION:
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


def _shapes(work: Work) -> tuple[tuple[int, ...], ...]:
    """Sizes of the operands; of a transform that of the signal, not of half a spectrum."""
    if work[0] not in _TRANSFORMS:
        return work[1]
    size = list(work[1][0])
    for dim, length in zip(*json.loads(work[4]), strict=True):
        size[dim] = length
    return (tuple(size),)


def _operations(work: Work) -> int:
    """Operations, as far as needed to compare shapes."""
    if work[0] in _LOOKUPS:
        return prod(work[1][0])
    if work[0] in _TRANSFORMS:
        (signal,) = _shapes(work)
        return 5 * prod(signal) * max(signal).bit_length()
    name, (left, right, *_), *_ = work
    if name in _CONVOLUTIONS:
        return prod(left) * prod(right) // max(1, left[1])
    return prod(left) * (right[-2] if name in _ATTENTION else right[-1])


def _timed(torch: Any, work: Work, device: bool, deadline: float) -> Iterator[tuple[str, float]]:
    """(way, median seconds of a call) of the ways to do ``work``; none where there is one only."""
    _, sizes, strides, dtype, _ = work
    extent = [
        1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        for size, stride in zip(sizes, strides, strict=True)
    ]
    room = torch.cuda.mem_get_info()[0] if device else free_bytes()
    if 16 * sum(extent) > room // 8:
        return
    where = "cuda" if device else "cpu"
    seed = torch.Generator(device=where).manual_seed(0)
    operands = [
        torch.empty(n, dtype=getattr(torch, dtype), device=where)
        .normal_(generator=seed)
        .as_strided(size, step)
        for n, size, step in zip(extent, sizes, strides, strict=True)
    ]
    act = _act(torch, work, device)
    ways: dict[str, Callable[[], float]] = {}
    clock = partial(_seconds, torch, device)
    base = partial(act, *operands)
    ways[AS_IT_IS] = partial(clock, base)
    ways.update(_others(torch, work, act, operands, device, clock))
    if len(ways) == 1:
        return
    samples: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(ROUNDS + 1):
        for way, take in ways.items():
            seconds = take()
            if turn:  # the first one warms up
                samples[way].append(seconds)
        if turn and time.monotonic() > deadline:
            break
    for way, found in samples.items():
        yield way, median(found)


def _act(torch: Any, work: Work, device: bool) -> Any:
    """The function that does it with its operands."""
    name, settings = work[0], work[4]
    if name in _TRANSFORMS:
        over, lengths = json.loads(settings)
        last = lengths[-1] if name == "aten::_fft_c2r" else True  # one-sided, or forward
        transform = getattr(torch.ops.aten, name.removeprefix("aten::")).default
        return lambda signal: transform(signal, over, 0, last)
    if name in _LOOKUPS:
        rows, where = work[1][0][0], "cuda" if device else "cpu"
        seed = torch.Generator(device=where).manual_seed(0)
        size = _BATCHES, min(rows, _MOST_ROWS)
        batches = cycle(torch.randint(rows, size, device=where, generator=seed))
        return lambda table: table.index_select(0, next(batches))
    if name in _PRODUCTS:
        return torch.bmm if len(work[1][0]) == 3 else torch.mm
    if name in _ATTENTION:
        attention = torch.nn.functional.scaled_dot_product_attention
        if _has_mask(work):
            # A causal one, of the work's own dtype.
            sizes, where = (size[-2] for size in work[1][:2]), "cuda" if device else "cpu"
            mask = torch.ones(*sizes, device=where).tril()
            if settings == "bool":
                return partial(attention, attn_mask=mask.bool())
            mask = torch.zeros_like(mask).masked_fill(mask == 0, -torch.inf)
            return partial(attention, attn_mask=mask.to(getattr(torch, settings)))
        return partial(attention, is_causal=settings == "causal")
    # stride, padding, dilation, transposed, output_padding, groups
    *lists, groups = (json.loads(text.lower()) for text in json.loads(settings))
    return lambda x, weight: torch.convolution(x, weight, None, *lists, groups)


def _others(
    torch: Any,
    work: Work,
    act: Callable[..., object],
    operands: list[Any],
    device: bool,
    clock: Callable[[Act], float],
) -> Iterator[tuple[str, Callable[[], float]]]:
    """The other ways to do ``work``; operands in another dtype or format are made before."""
    name, dtype = work[0], work[3]
    if name in _TRANSFORMS:
        longer, lengths = _longer(work)
        signal = operands[0].new_empty(longer[1][0]).normal_()
        words = "x".join(map(str, lengths))
        yield f"length {words}", partial(clock, partial(_act(torch, longer, device), signal))
        return
    if name in _LOOKUPS:
        yield "contiguous", partial(clock, partial(act, operands[0].contiguous()))
        return
    if _has_mask(work):
        attention = torch.nn.functional.scaled_dot_product_attention
        yield IS_CAUSAL, partial(clock, partial(attention, *operands, is_causal=True))
        return
    if name in _PRODUCTS and device and (aligned := _aligned(operands)):
        yield ALIGNED, partial(clock, partial(act, *aligned))
    fast_half = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    has_half = device or (fast_half is not None and fast_half())
    if dtype == "float32":
        switch = torch.backends.cudnn if name in _CONVOLUTIONS else torch.backends.cuda.matmul
        with suppress(RuntimeError):  # the script uses the new switches (2.9)
            if device and name not in _ATTENTION and not switch.allow_tf32:
                tf32 = partial(_attribute, switch, "allow_tf32", True)
                yield "TF32", partial(_within, tf32, clock, operands, act)
    elif not device:  # a CPU may have no instructions for it
        wide = [each.to(torch.float32) for each in operands]
        yield "float32", partial(clock, partial(act, *wide))
    if dtype != "bfloat16" and has_half and (dtype == "float32" or not device):
        half = [each.to(torch.bfloat16) for each in operands]
        yield "bfloat16", partial(clock, partial(act, *half))
    if name in _CONVOLUTIONS and operands[0].dim() == 4:
        formats = {"channels last": torch.channels_last, "contiguous": torch.contiguous_format}
        for words, layout in formats.items():
            laid = [each.contiguous(memory_format=layout) for each in operands]
            if [each.stride() for each in laid] != [each.stride() for each in operands]:
                yield words, partial(clock, partial(act, *laid))
    if name in _ATTENTION:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        for backend in _BACKENDS:
            kind = getattr(SDPBackend, backend, None)
            if kind is None:
                continue
            with suppress(RuntimeError), sdpa_kernel(kind):
                act(*operands)  # raises where it cannot
                words = backend.lower().replace("_", " ")
                yield words, partial(_within, partial(sdpa_kernel, kind), clock, operands, act)


def _aligned(operands: list[Any]) -> list[Any]:
    """Like these, with all rows at multiples of 16 bytes; none where they are."""
    unit = _ALIGNMENT // operands[0].element_size()
    both = [pair for each in operands for pair in zip(each.shape, each.stride(), strict=True)]
    if not any(n > 1 and step != 1 and step % unit for n, step in both):
        return []
    made = []
    for each in operands:
        rows, columns = (-(-n // unit) * unit for n in each.shape[-2:])
        by_column = each.stride(-1) != 1 and each.stride(-2) == 1
        laid = (columns, rows) if by_column else (rows, columns)
        new = each.new_empty(*each.shape[:-2], *laid).normal_()
        made.append(new.mT if by_column else new)
    return made


def _longer(work: Work) -> tuple[Work, list[int]]:
    """The same transform of fast lengths, and these."""
    over, lengths = json.loads(work[4])
    fast = [fast_length(n) for n in lengths]
    size = list(work[1][0])
    for dim, length in zip(over, fast, strict=True):
        size[dim] = length
    if work[0] == "aten::_fft_c2r":
        size[over[-1]] = fast[-1] // 2 + 1
    return (work[0], (tuple(size),), (), work[3], json.dumps([over, fast])), fast


def _within(
    context: Callable[[], Any], clock: Callable[[Act], float], operands: list[Any], act: Any
) -> float:
    with context():
        return clock(partial(act, *operands))


@contextmanager
def _attribute(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _seconds(torch: Any, device: bool, act: Act) -> float:
    """Seconds of a call; short ones are timed together."""
    calls, seconds = 1, _once(torch, device, act, 1)
    if seconds < _BATCH_S:
        calls = min(_MOST_CALLS, int(_BATCH_S / max(seconds, 1e-7)) + 1)
        seconds = _once(torch, device, act, calls)
    return seconds / calls


def _once(torch: Any, device: bool, act: Act, calls: int) -> float:
    if not device:
        began = time.perf_counter()
        for _ in range(calls):
            act()
        return time.perf_counter() - began
    # Launches of small work are slower than it: the device waits until all are there.
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        act()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3
