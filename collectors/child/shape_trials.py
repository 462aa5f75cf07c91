"""The step's own products and convolutions timed both ways, when the script has ended.

What another dtype, TF32, another memory format or another backend of attention saves depends on
the shapes: a product of 16 rows gains nothing by arithmetic that is four times faster; and a CPU
without instructions for float16 may take 30 times as long for a product in it. The shapes
are read from the last profiler window's trace, the largest ones (by operations) are run again on
random data as they are and every way there is, in turns: one ``shape_trial`` event each. Attention
is whole in the eager window's trace only: compiled code calls a backend, or separate operators. It
is timed where it ran as separate operators, where it is in float32 on a GPU, and where it has a
mask that is a causal one (`masks`), against ``is_causal=True``.
A product on a GPU is timed with rows that begin at multiples of 16 bytes, too, where they do not; a
batch of products with one and the same matrix, as one product of all the others side by side.
A Fourier transform is timed where its length has a factor that libraries have no code for, against
the next length without one. Rows that are looked up are timed where a row's elements lie apart, at
random places, against a table whose rows lie together; they too are in the eager window's trace
only, since compiled code looks up in kernels of its own. What works along one dimension (a
cumulative sum, a sort) is timed where its elements lie apart, against a tensor in which they lie
together, and with copies from one to the other and back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import cycle
from statistics import median
from typing import Any, NamedTuple

from .ceilings import free_bytes
from .masks import Masks
from .recorder import Recorder
from .shape_works import (
    ALONG,
    ATTENTION,
    CONVOLUTIONS,
    LOOKUPS,
    PRODUCTS,
    TRANSFORMS,
    Work,
    fast_length,
    has_mask,
    heaviest,
    last_traces,
    of_eager,
    shapes_of,
)

BUDGET_S = 2.0
ROUNDS = 5
AS_IT_IS = "as it is"
IS_CAUSAL = "is_causal=True"
ALIGNED = "aligned"
COPIED = "copied"
ONE_PRODUCT = "one product"
_ALIGNMENT = 16  # bytes that libraries' fast kernels load at once
_BATCH_S = 1e-3  # calls that are shorter are timed together
_MOST_CALLS = 200
#: Each look-up has other rows than the last ones: a cache would have those.
_MOST_ROWS, _BATCHES = 4096, 64
_BACKENDS = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH")

Act = Callable[[], object]


class Operand(NamedTuple):
    """A tensor that a call was given."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


def write_shape_trials(torch: Any, recorder: Recorder, masks: Masks, *, device: bool) -> None:
    """Time the step's heaviest shapes for about 2 s."""
    deadline = time.monotonic() + BUDGET_S
    traces = dict(last_traces(recorder.raw / "profile", recorder.pid))
    works = next(filter(None, map(heaviest, traces.values())), {})
    if "eager" in traces:
        works = {**of_eager(traces["eager"], device=device), **works}
    name = f"cuda:{torch.cuda.current_device()}" if device else "cpu"
    with torch.no_grad(), torch.autocast("cuda" if device else "cpu", enabled=False):
        for work, count in works.items():
            if has_mask(work):
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
                        shape=", ".join("x".join(map(str, size)) for size in shapes_of(work)),
                        dtype=work[3],
                        count=count,
                        way=way,
                        value=seconds * 1e6,
                        clock="device" if device else "host",
                    )


def _timed(torch: Any, work: Work, device: bool, deadline: float) -> Iterator[tuple[str, float]]:
    """(way, median seconds of a call) of the ways to do ``work``; none where there is one only."""
    _, sizes, strides, dtype, _ = work
    asked = [Operand(*each, dtype) for each in zip(sizes, strides, strict=True)]
    operands = random_operands(torch, asked, device, bytes_each=16)
    if operands is None:
        return
    act = _act(torch, work, device)
    ways: dict[str, Callable[[], float]] = {}
    clock = partial(seconds_of, torch, device)
    base = partial(act, *operands)
    ways[AS_IT_IS] = partial(clock, base)
    ways.update(_others(torch, work, act, operands, device, clock))
    if len(ways) == 1:
        return
    yield from in_turn(ways, ROUNDS, deadline).items()


def random_operands(
    torch: Any, asked: Sequence[Operand], device: bool, *, bytes_each: int
) -> list[Any] | None:
    """Tensors of random numbers; None where ``bytes_each`` of an element don't fit in well."""
    extents = [
        1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        for size, stride, _ in asked
    ]
    room = torch.cuda.mem_get_info()[0] if device else free_bytes()
    if bytes_each * sum(extents) > room // 8:
        return None
    where = "cuda" if device else "cpu"
    seed = torch.Generator(device=where).manual_seed(0)
    made = []
    for (size, stride, name), extent in zip(asked, extents, strict=True):
        dtype = getattr(torch, name)
        drawn = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
        data = torch.empty(extent, dtype=drawn, device=where).normal_(generator=seed)
        made.append(data.to(dtype).as_strided(size, stride))
    return made


def in_turn(
    ways: Mapping[str, Callable[[], float]], rounds: int, deadline: float
) -> dict[str, float]:
    """Median seconds of each way, taken in turn after a round that warms up."""
    samples: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way, take in ways.items():
            seconds = take()
            if turn:
                samples[way].append(seconds)
        if turn and time.monotonic() > deadline:
            break
    return {way: median(found) for way, found in samples.items()}


def _act(torch: Any, work: Work, device: bool) -> Any:
    """The function that does it with its operands."""
    name, settings = work[0], work[4]
    if name in TRANSFORMS:
        over, lengths = json.loads(settings)
        last = lengths[-1] if name == "aten::_fft_c2r" else True  # one-sided, or forward
        transform = getattr(torch.ops.aten, name.removeprefix("aten::")).default
        return lambda signal: transform(signal, over, 0, last)
    if name in LOOKUPS:
        rows, where = work[1][0][0], "cuda" if device else "cpu"
        seed = torch.Generator(device=where).manual_seed(0)
        size = _BATCHES, min(rows, _MOST_ROWS)
        batches = cycle(torch.randint(rows, size, device=where, generator=seed))
        return lambda table: table.index_select(0, next(batches))
    if name in ALONG:
        return _along(torch, work)
    if name in PRODUCTS:
        return torch.bmm if len(work[1][0]) == 3 else torch.mm
    if name in ATTENTION:
        attention = torch.nn.functional.scaled_dot_product_attention
        if has_mask(work):
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


def _along(torch: Any, work: Work, dim: int | None = None) -> Callable[[Any], Any]:
    """The operator along its dimension, or along ``dim``, with the arguments before that."""
    own, *before = json.loads(work[4])
    dim, short = own if dim is None else dim, work[0].removeprefix("aten::")
    if short == "sort":
        return partial(torch.sort, dim=dim, stable=before == ["True"])
    if before:  # k of topk and kthvalue
        return partial(getattr(torch, short), k=int(before[0]), dim=dim)
    return partial(getattr(torch, short), dim=dim)


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
    if name in TRANSFORMS:
        longer, lengths = _longer(work)
        signal = operands[0].new_empty(longer[1][0]).normal_()
        yield (
            f"length {'x'.join(map(str, lengths))}",
            partial(clock, partial(_act(torch, longer, device), signal)),
        )
        return
    if name in LOOKUPS:
        yield "contiguous", partial(clock, partial(act, operands[0].contiguous()))
        return
    if name in ALONG:
        ways = laid_together(torch, work, operands[0])
        yield from ((way, partial(clock, each)) for way, each in ways)
        return
    if has_mask(work):
        attention = torch.nn.functional.scaled_dot_product_attention
        yield IS_CAUSAL, partial(clock, partial(attention, *operands, is_causal=True))
        return
    if name in PRODUCTS and (whole := as_one(torch, operands)):
        yield ONE_PRODUCT, partial(clock, whole)
    if name in PRODUCTS and device and (aligned := _aligned(operands)):
        yield ALIGNED, partial(clock, partial(act, *aligned))
    fast_half = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    has_half = device or (fast_half is not None and fast_half())
    if dtype == "float32":
        switch = torch.backends.cudnn if name in CONVOLUTIONS else torch.backends.cuda.matmul
        with suppress(RuntimeError):  # the script uses the new switches (2.9)
            if device and name not in ATTENTION and not switch.allow_tf32:
                tf32 = partial(_attribute, switch, "allow_tf32", True)
                yield "TF32", partial(_within, tf32, clock, operands, act)
    elif not device:  # a CPU may have no instructions for it
        wide = [each.to(torch.float32) for each in operands]
        yield "float32", partial(clock, partial(act, *wide))
    if dtype != "bfloat16" and has_half and (dtype == "float32" or not device):
        half = [each.to(torch.bfloat16) for each in operands]
        yield "bfloat16", partial(clock, partial(act, *half))
    if name in CONVOLUTIONS and operands[0].dim() == 4:
        formats = {"channels last": torch.channels_last, "contiguous": torch.contiguous_format}
        for words, layout in formats.items():
            laid = [each.contiguous(memory_format=layout) for each in operands]
            if [each.stride() for each in laid] != [each.stride() for each in operands]:
                yield words, partial(clock, partial(act, *laid))
    if name in ATTENTION:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        for kind in filter(None, (getattr(SDPBackend, each, None) for each in _BACKENDS)):
            with suppress(RuntimeError), sdpa_kernel(kind):
                act(*operands)  # raises where it cannot
                words = kind.name.lower().replace("_", " ")
                yield words, partial(_within, partial(sdpa_kernel, kind), clock, operands, act)


def laid_together(torch: Any, work: Work, operand: Any) -> Iterator[tuple[str, Act]]:
    """Work along a dimension whose elements lie next to each other, before or by copies."""
    dim, last = json.loads(work[4])[0], _along(torch, work, -1)

    def there_and_back() -> None:
        found = last(operand.movedim(dim, -1).contiguous())
        for each in found if isinstance(found, tuple) else [found]:
            each.movedim(-1, dim).contiguous()

    yield "contiguous", partial(last, operand.movedim(dim, -1).contiguous())
    yield COPIED, there_and_back


def as_one(torch: Any, operands: list[Any]) -> Act | None:
    """A batch of products as one, where one operand is the same in all of them.

    The others are laid next to each other in each call; the result is a view of the product's.
    """
    if len(operands) != 2 or operands[0].dim() != 3 or operands[0].shape[0] < 2:
        return None
    left, right = operands
    repeated = [each.stride(0) == 0 for each in operands]
    if repeated == [True, False]:
        batch, _, columns = right.shape
        return lambda: (
            torch.mm(left[0], right.transpose(0, 1).reshape(-1, batch * columns))
            .view(-1, batch, columns)
            .transpose(0, 1)
        )
    if repeated == [False, True]:
        return lambda: torch.mm(left.reshape(-1, left.shape[2]), right[0])
    return None


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


def seconds_of(torch: Any, device: bool, act: Act) -> float:
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
