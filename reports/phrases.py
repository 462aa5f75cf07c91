"""How every report words the explanation and the check of outputs: groups, limits, fusion."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceview.diagnosis.explanation import Ceiling, FusionNote, KernelLimit, MatchGroup, StepLimit
from traceview.diagnosis.model import ComparedOutputs, Diagnosis, OutputCheck
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_STREAM = re.compile(r"stream (\d{1,9})")
_OUTPUTS = {
    "agree": "Yes.",
    "random": "Yes, with eager's random numbers: compiled draws others from the same seed.",
    "rounding": "Yes, with eager's rounding: compiled rounds elsewhere.",
    "differ": "No.",
}


def side(group: MatchGroup, stance: str) -> str:
    """One side of a group: ``35 kernels, 0.362 ms``; ``nothing`` where there is none."""
    eager = stance == "eager"
    count = group.eager_kernels if eager else group.compiled_kernels
    ms = group.eager_ms if eager else group.compiled_ms
    if not count and not ms:
        return f"nothing in {stance}"
    noun = "kernel" if group.clock == "device" else "operator"
    said = fmt.count(count)
    return f"{said} {noun if said == '1' else noun + 's'}, {fmt.milliseconds(ms)}"


def group(row: MatchGroup) -> str:
    """``35 kernels, 0.362 ms → 1 kernel, 0.042 ms``."""
    return f"{side(row, 'eager')} → {side(row, 'compiled')}"


def computes(row: MatchGroup) -> str:
    """The operators of a group; where none are known, its kernels."""
    found = dict.fromkeys(names.kernel(kernel.name) for kernel in row.kernels)
    return operators(row.ops) or some(list(found), 4) or "operators not recorded"


def operators(ops: Sequence[str], most: int = 12) -> str:
    """``sigmoid + tanh + mul``, without the namespace that all of them share."""
    said = " + ".join(names.operator(op) for op in ops[:most])
    return f"{said} and {len(ops) - most} more" if len(ops) > most else said


def some(names_: Sequence[str], most: int) -> str:
    """``a, b and 3 more``."""
    said = ", ".join(one_line(name, 100) for name in names_[:most])
    return f"{said} and {len(names_) - most} more" if len(names_) > most else said


def bound(name: str | None) -> str:
    """What limits a kernel; ``not known`` where bytes and operations are not."""
    return "not known" if name is None else names.word(names.BOUNDS, name)


def bytes_of(row: KernelLimit) -> str:
    """The least bytes of one execution, or that they are not known."""
    return "not known" if row.bytes is None else fmt.size(row.bytes)


def ceiling(row: Ceiling) -> str:
    """``copy 4,010 GB/s``, ``matmul bfloat16 712 TFLOP/s``."""
    return one_line(f"{ceiling_title(row)} {fmt.rate(row.value, row.unit)}", 80)


def ceiling_title(row: Ceiling) -> str:
    """``copy``, ``matmul bfloat16``."""
    dtype = f" {row.dtype}" if row.dtype else ""
    return names.word(names.CEILINGS, row.kind) + dtype


def compiled_limit(diagnosis: Diagnosis) -> StepLimit | None:
    """The compiled step against the device's limits; None where no such row was made."""
    limits = diagnosis.explanation.step_limits
    return next((limit for limit in limits if limit.stance == "compiled"), None)


def by_outcome(notes: Sequence[FusionNote]) -> tuple[list[FusionNote], list[FusionNote]]:
    """Notes on what was fused, and on what was not, in their order."""
    fused = [found for found in notes if is_fused(found)]
    return fused, [found for found in notes if not is_fused(found)]


def is_fused(row: FusionNote) -> bool:
    """Whether a note is about something that was fused, an epilogue or prologue included."""
    return row.kind == "fused" or row.kind.endswith("_fused")


def saved(row: FusionNote) -> str:
    """What fusing saves or would save a call: ``5.34 GiB saved per call``; "" if not known."""
    if row.bytes_saved is None:
        return ""
    done = "saved" if is_fused(row) else "that fusing would save"
    return f"{fmt.size(row.bytes_saved)} {done} per call"


def lane(name: str) -> str:
    """A lane of a step's timeline: ``host thread``, ``device, stream 7``."""
    match = _STREAM.fullmatch(name)
    return f"device, stream {match.group(1)}" if match else {"host": "host thread"}.get(name, name)


def outputs_agree(one: ComparedOutputs) -> str:
    """The answer for one callable, and what it rests on."""
    if one.outcome not in _OUTPUTS:
        return f"Not compared: {one.why or fmt.MISSING}."
    said = _OUTPUTS[one.outcome]
    again = [check for check in one.checks if check.run == "eager_again"]
    unlike = [check for check in again if check.max_abs_diff or check.differing or not check.same]
    if unlike:
        most = max((check.max_abs_diff or 0.0 for check in unlike), default=0.0)
        said += f" Run twice, eager itself differs, by up to {tiny(most)}."
    elif again:
        said += " Run twice, eager gives the same bits."
    if one.reference is None and one.reference_why:
        said += f" There is no run in float64 to compare with ({one.reference_why})."
    return said


def output_rows(one: ComparedOutputs) -> list[OutputCheck]:
    """What the table shows: every run but eager's own repetition."""
    return [check for check in one.checks if check.run != "eager_again"]


def output_run(check: OutputCheck) -> str:
    """Which run a row is of."""
    known = {
        "fallback_random": "with eager's random numbers",
        "ladder": f'stage "{check.backend}"',
    }
    return known.get(check.run or "", check.run or fmt.MISSING)


def tiny(value: float | None) -> str:
    """Two significant digits at any size; a dash where it is not known."""
    return f"{value:.2g}" if fmt.given(value) else "–"


def within_limit(check: OutputCheck) -> str:
    """``yes`` or ``no``, and the limit or the reason."""
    if check.same is None:
        return f"not run: {check.why or fmt.MISSING}"
    said = "yes" if check.same else "no"
    if check.why:
        return f"{said}: {check.why}"
    if check.differing:
        what = "NaN or infinite on one side" if check.max_abs_diff is not None else "differ"
        return f"{said}: {fmt.plural(check.differing, 'element')} {what}"
    return f"{said}, up to {tiny(check.limit)}" if fmt.given(check.limit) else said


def outputs_summary(diagnosis: Diagnosis) -> str | None:
    """One line: how many callables agree; None without ``--compare-outputs``."""
    found = diagnosis.outputs
    if not found:
        return None
    groups = {
        "agree": "like eager's",
        "random": "like eager's but for random numbers",
        "rounding": "like eager's but for roundings",
        "differ": "unlike eager's",
        "not_compared": "not compared",
    }
    counts = [(sum(one.outcome == name for one in found), said) for name, said in groups.items()]
    said = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"outputs of compiled callables: {said}"
