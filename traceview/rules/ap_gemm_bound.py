"""
## What it finds
A step that spends nearly all its time in matrix products, convolutions or attention, in eager and
compiled alike; or much of it in products in float16 or bfloat16 on a CPU that is faster in float32.

## Why it costs
It costs nothing: those run in the same library kernels either way, so torch.compile has next to
nothing to fuse. A speedup near 1.0× is expected here, and not a failure.

A CPU without instructions for float16 or bfloat16 takes up to 30 times as long for a product in it
as in float32. That does cost, and compiling does not change it.

## Evidence
GEMM, convolution and attention are at least 70 % of the busy time in both profiler windows, busy
time is at least 70 % of the step, and the step's time changes by less than 10 %. Where the device's
ceilings were measured, how close these kernels come to them. What bf16, TF32, another memory format
or another backend of attention saves is measured on the step's own shapes at the run's end. On a
CPU products of 16 bits are timed there in float32 too; recordings without that have an estimate
from the rates that this CPU reached in both. These may be any part of the step from which the other
dtype saves a fifth of it; information where compiling helps or hurts, as that has other causes.

## What to do
On a CPU that is slow in the model's dtype: another dtype, by the measured times.

Use faster arithmetic (bf16, fp16, TF32), or larger batches. `mode="max-autotune-no-cudagraphs"`
lets Triton's GEMMs compete with the library's on a GPU.

## Settings
- `least_share`: part of the busy time that library kernels must take in both stances.
- `most_change`: relative change of the step's time from which the rule is silent.
- `least_saved`: part of the compiled step that another dtype must save on a CPU.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/kernel/mm.py
- https://github.com/pytorch/pytorch/issues/119611
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from traceview.derive.origins.work import LIBRARY
from traceview.rules._gain import ALIGNED, IS_CAUSAL, ONE_PRODUCT
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first_rank,
    if_users,
    milliseconds,
    outcome,
    percent,
    plural,
    ratio,
    rows,
    severity,
    short,
    slowdown,
)
from traceview.words.names import category
from traceview.words.numbers import rate
from traceview.words.text import listed

CODE = "TV410"
NEEDS = frozenset({"accounting", "speedups"})
SEVERITIES = ("warning", "info")
FOLLOWS = frozenset(
    {
        "ind-channels-last",
        "ind-expanded-product",
        "ind-extern-dominated",
        "ind-other-form",
        "ind-slow-kernel",
        "ind-tf32-off",
    }
)

#: With 30 % left for everything else, even fusing all of that away could not reach 1.5×.
LEAST_SHARE = 0.70
#: A step that waits or runs Python for longer is bound by that, whatever its kernels are.
FEWEST_BUSY_SHARE = 0.70
#: A larger change than this needs an explanation of its own.
MOST_CHANGE = 0.10
#: Part of the library kernels' time whose floor must be known to compare them with it.
MOST_KNOWN = 0.90
#: A way that saves less of the library's time is not worth a change.
LEAST_GAIN = 0.05
#: Times of a few shapes say nothing of a kind of work that takes most of its time in others.
MOST_UNTIMED = 0.75
#: Another dtype changes results: a smaller part of the step is not worth that.
LEAST_SAVED = 0.20
#: A dtype that is named more often than this is named for other things too.
_MOST_NAMED = 3
_SHORT = ("float16", "bfloat16")


def check(
    tables: Tables,
    *,
    least_share: float = LEAST_SHARE,
    most_change: float = MOST_CHANGE,
    least_saved: float = LEAST_SAVED,
) -> Iterator[Finding]:
    """At most one finding: the step as a whole."""
    if slow := _slow_dtype(tables, least_saved):
        yield slow
        return
    change = slowdown(tables)
    if change is None or abs(change - 1) >= most_change:
        return
    # Library kernels' part of the busy time.
    shares = []
    for stance in ("eager", "compiled"):
        accounts = first_rank(rows(tables, "accounting", stance=stance))
        busy = [row for row in accounts if row["kind"] == "busy"]
        step, total = (sum(row["ms"] or 0.0 for row in part) for part in (accounts, busy))
        if not total or total < FEWEST_BUSY_SHARE * step:
            return
        library = sum(row["ms"] or 0.0 for row in busy if row["category"] in LIBRARY)
        shares.append(library / total)
    if min(shares) < least_share:
        return
    eager, compiled = shares

    # What these kernels would take at the device's ceilings, if that is known of most of them.
    limits = first_rank(rows(tables, "kernel_limits", stance="compiled"))
    mine = [row for row in limits if row["category"] in LIBRARY]
    known = [row for row in mine if row["of_ceiling"] is not None]
    ms, total = (sum(row["ms"] for row in part) for part in (known, mine))
    at_ceiling = []
    if total and ms >= MOST_KNOWN * total:
        floor = milliseconds(sum(row["floor_ms"] for row in known))
        text = f"compiled: {milliseconds(ms)} in them, {floor} at the measured ceilings"
        at_ceiling.append(Evidence(text, "kernel_limits"))
    faster, what_to_do = _other_ways(tables)
    at_ceiling += faster
    yield Finding(
        code=CODE,
        rule="ap-gemm-bound",
        severity="info",
        title=(
            f"{percent(compiled)} of the busy time is matrix products: little for compiling to gain"
        ),
        explanation=(
            "GEMM, convolution and attention run in the same library kernels in eager and compiled "
            f"code, so a speedup near 1.0× is expected. This step's is {ratio(1 / change)}."
        ),
        cost=Cost(about="nothing is lost"),
        confidence="measured",
        location=None,
        evidence=(
            Evidence(f"eager: {percent(eager)} of the busy time", "accounting"),
            Evidence(f"compiled: {percent(compiled)} of the busy time", "accounting"),
            *at_ceiling,
        ),
        what_to_do=what_to_do,
        remedy=_settings(tables, _best_way(_measured_ways(tables))),
    )


def _other_ways(tables: Tables) -> tuple[list[Evidence], str]:
    """What other ways to do the step's library work gain, as measured, and what to do."""
    gains = _measured_ways(tables)
    best = _best_way(gains)
    if best is None:
        return [], (
            "Nothing is wrong. Faster arithmetic (bf16, fp16, TF32) or larger batches change this "
            'step; on a GPU, mode="max-autotune-no-cudagraphs" lets Triton\'s GEMMs compete.'
        )
    if best["share"] < LEAST_GAIN:
        ways = sorted({row["way"] for row in gains})
        gain = f"{listed(ways)} gain{'s' if len(ways) == 1 else ''} nothing"
        return [], (
            f"Nothing is wrong, and {gain} on this step's shapes (measured): only larger batches "
            "or less work change it."
        )
    text = (
        f"{best['way']} on {plural(best['shapes'], 'shape')} of this step: "
        f"{milliseconds(best['ms'])} instead of {milliseconds(best['base_ms'])}"
    )
    return [Evidence(text, "shape_gains")], (
        f"Nothing is wrong. {best['way']} saves {percent(best['share'])} of the "
        f"{category(best['kind'])} time, measured on this step's shapes. Larger batches may change "
        "it as well."
    )


def _slow_dtype(tables: Tables, least_saved: float) -> Finding | None:
    """Products in a dtype that this CPU is slow in, where another would save much of the step."""
    accounts = first_rank(rows(tables, "accounting", stance="compiled", clock="host"))
    step = sum(row["ms"] or 0.0 for row in accounts)
    best: tuple[float, float, Row] | None = None
    ways = _other_dtypes(_measured_ways(tables)) or _other_dtypes(_by_rate(tables))
    for row in ways:
        busy = [each for each in accounts if each["kind"] == "busy"]
        ms = sum(each["ms"] or 0.0 for each in busy if each["category"] == row["kind"])
        ms *= _part(tables, row["kind"], row["dtype"])
        saved = ms * row["share"]
        if step and saved >= least_saved * step and (best is None or saved > best[0]):
            best = saved, ms, row
    if best is None:
        return None
    saved, ms, row = best
    work, dtype, way = category(row["kind"]), row["dtype"], row["way"]
    measured = row["shapes"] is not None
    largest = _largest(tables, row["kind"], dtype)
    named = _named(tables, dtype)
    places = [place for place in (*named[:1], largest, *named[1:]) if place is not None]
    if len(named) > _MOST_NAMED:
        places = [place for place in (largest, *named) if place is not None]
    at = f", the longest at {short(largest)}" if largest else ""
    mine = [each for each in ways if (each["kind"], each["dtype"]) == (row["kind"], dtype)]
    others = [each for each in mine if each["way"] != way and each["share"] > 0]
    aside = "".join(f" ({each['way']}: {percent(1 - each['share'])})" for each in others)
    takes = "the same shapes take" if measured else "they would take"
    return Finding(
        code=CODE,
        rule="ap-gemm-bound",
        # Eager calls the same library: this is not why compiling helps or hurts.
        severity="info" if outcome(tables) in ("helped", "hurt") else severity(tables, saved),
        title=(
            f"{work.capitalize()} in {dtype} take {percent(min(1.0, ms / step))} of the step{at}: "
            f"on this CPU {takes} {percent(1 - row['share'])} of that time in {way}"
        ),
        explanation=(
            f"This CPU, or torch's library on it, has no fast way for {work} in {dtype}. Compiling "
            "does not change that: eager and compiled code call the same library."
        ),
        cost=Cost(
            saved, None, f"of {milliseconds(ms)} of {work} in {dtype}, by their time in {way}"
        ),
        confidence="measured" if measured else "derived",
        location=places[0] if places else None,
        evidence=tuple(_told(tables, each) for each in mine),
        what_to_do=(
            f"Compute in {way} on this CPU{aside}, and compare the results. "
            + (
                f"{dtype} saves memory here, and no time."
                if way == "float32"
                else "bfloat16 has fewer digits than float16: float32 keeps them all."
            )
        ),
        snippet=Snippet("python", f"model = model.to(torch.{way})  # and its inputs"),
        also_at=tuple(dict.fromkeys(places))[1:4],
    )


def _other_dtypes(gains: list[Row]) -> list[Row]:
    """Those of ``gains`` that are for what a CPU computes in 16 bits, in another dtype."""
    return [
        row
        for row in gains
        if row["clock"] == "host"
        and row["dtype"] in _SHORT
        and row["way"] in ("float32", "bfloat16")
    ]


def _rates(tables: Tables) -> dict[str, float]:
    """Dtype → TFLOP/s of matrix products on the CPU, measured at the run's end."""
    measured = first_rank(rows(tables, "ceilings", kind="matmul", device="cpu", unit="TFLOP/s"))
    return {row["dtype"]: row["value"] for row in measured if row["value"]}


def _told(tables: Tables, gain: Row) -> Evidence:
    if gain["shapes"] is None:
        rates = {each: _rates(tables)[each] * 1e3 for each in (gain["dtype"], gain["way"])}
        said = listed([f"{rate(value, 'GFLOP/s')} in {each}" for each, value in rates.items()])
        return Evidence(f"what this CPU reached in large products: {said}", "ceilings")
    before, after = milliseconds(gain["base_ms"]), milliseconds(gain["ms"])
    shapes = plural(gain["shapes"], "shape")
    text = f"{shapes} of this step: {before} in {gain['dtype']}, {after} in {gain['way']}"
    return Evidence(text, "shape_gains")


def _by_rate(tables: Tables) -> list[Row]:
    """As rows of ``shape_gains``, by the rates that matrix products reached on the CPU."""
    rates = _rates(tables)
    return [
        {
            **{"kind": "gemm", "dtype": dtype, "way": way, "clock": "host", "shapes": None},
            "share": 1 - rates[dtype] / rates[way],
        }
        for dtype in _SHORT
        for way in ("float32", "bfloat16")
        if way != dtype and {dtype, way} <= rates.keys()
    ]


def _library_calls(tables: Tables, kind: str, stance: str) -> list[Row]:
    return first_rank(rows(tables, "matched_kernels", category=kind, stance=stance))


def _part(tables: Tables, kind: str, dtype: str) -> float:
    """The part, 0 to 1, of the compiled step's work of ``kind`` that is in ``dtype``."""
    calls = _library_calls(tables, kind, "compiled") or _library_calls(tables, kind, "eager")
    total = sum(row["ms"] or 0.0 for row in calls)
    mine = sum(row["ms"] or 0.0 for row in calls if row["dtype"] == dtype)
    return mine / total if total else 0.0


def _largest(tables: Tables, kind: str, dtype: str) -> Location | None:
    """The user's line whose calls take longest in eager."""
    spent: dict[Location, float] = defaultdict(float)
    for row in _library_calls(tables, kind, "eager"):
        place = if_users(row["file"], row["line"], None) if row["file"] and row["line"] else None
        if place and row["dtype"] == dtype:
            spent[place] += row["ms"] or 0.0
    return max(spent, key=lambda place: spent[place], default=None)


def _named(tables: Tables, dtype: str) -> list[Location]:
    """The user's lines that name ``dtype``."""
    found = first_rank(rows(tables, "setting_sites", name=dtype))
    places = (Location(row["file"], row["line"], row["function"]) for row in found if row["line"])
    return list(dict.fromkeys(places))


def _measured_ways(tables: Tables) -> list[Row]:
    """Of work that was timed on enough of its shapes."""
    accounts = first_rank(rows(tables, "accounting", stance="compiled", kind="busy"))
    spent = {row["category"]: row["ms"] or 0.0 for row in accounts}
    return [
        row
        for row in first_rank(rows(tables, "shape_gains"))
        if row["kind"] in LIBRARY
        and row["way"] not in (IS_CAUSAL, ALIGNED, ONE_PRODUCT)  # findings of their own
        and row["base_ms"] >= (1 - MOST_UNTIMED) * spent.get(row["kind"], 0.0)
    ]


def _best_way(gains: list[Row]) -> Row | None:
    return max(gains, key=lambda row: row["base_ms"] - row["ms"], default=None)


def _settings(tables: Tables, best: Row | None) -> tuple[str, ...]:
    """The setting that has the step's library calls take another way; none for their operands."""
    if best is None:  # not measured
        on_cpu = {row["device_name"] for row in rows(tables, "runs")} == {"cpu"}
        return () if on_cpu else ("mode=max-autotune-no-cudagraphs",)
    way, kind = best["way"], best["kind"]
    cast = way == "bfloat16" and best["dtype"] in _SHORT
    if best["share"] < LEAST_GAIN or cast or way in ("contiguous", "float32"):
        return ()
    if way == "bfloat16":
        return ("autocast=bfloat16",)
    if way == "channels last":
        return ("channels_last",)
    if way == "TF32":
        if kind == "convolution":
            return ("torch.backends.cudnn.allow_tf32=True",)
        return ("float32_matmul_precision=high",)
    return (f"sdpa={way.upper().replace(' ', '_')}",)
