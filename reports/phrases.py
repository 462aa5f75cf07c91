"""How every report words the explanation and the check of outputs: groups, limits, fusion."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from traceview.diagnosis.explanation import Ceiling, FusionNote, KernelLimit, MatchGroup, StepLimit
from traceview.diagnosis.model import (
    ComparedOutputs,
    Diagnosis,
    OutputCheck,
    OutputDifference,
    OwnCode,
)
from traceview.torchtext.stages import STAGES
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_STREAM = re.compile(r"stream (\d{1,9})")
_MOST_DIFFERENCES = 5
_MOST_ROWS, _MOST_SETTINGS = 12, 12
_RIGHT = {
    "random": "Compiled draws other random numbers; with eager's they agree.",
    "rounding": "Compiled rounds elsewhere; with eager's roundings they agree.",
    "differ": "Some differ by no more than roundings can.",
}
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
    if one.gradients_why:
        said += f" Gradients are not compared ({one.gradients_why})."
    return said


def output_rows(one: ComparedOutputs) -> list[OutputCheck]:
    """What the table shows: no repetition of eager's own, and no layout that is the same."""
    return [
        check
        for check in one.checks
        if check.run != "eager_again" and not (check.what == "layout" and check.same)
    ]


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


def accuracy_answer(outputs: Sequence[ComparedOutputs], answer: Mapping[str, Any]) -> str:
    """What ``traceview accuracy`` prints: the answer first, then each callable."""
    wrong = [one for one in outputs if one.differences or one.own_code]
    right = [one for one in outputs if one.outcome != "not_compared" and one not in wrong]
    of = len(wrong) + len(right)
    said = {
        "agree": f"Compiled results agree with eager's in {fmt.plural(of, 'callable')}.",
        "differ": f"Compiled results differ from eager's in {len(wrong)} of "
        f"{fmt.plural(of, 'callable')}.",
        "not_compared": "Nothing was compared.",
    }
    lines = [said[answer["verdict"]]]
    for one in wrong:
        lines.append(f"\n{_callable(one)}: wrong")
        shown = sorted(
            one.differences,
            key=lambda d: (d.what == "gradient", -(d.relative_error or math.inf)),
        )
        lines += [f"  {_difference(each)}" for each in shown[:_MOST_DIFFERENCES]]
        if len(shown) > _MOST_DIFFERENCES:
            lines.append(f"  and {len(shown) - _MOST_DIFFERENCES} more (--json has all)")
        if one.own_code:
            lines += [f"  {text}" for text in _of_own_code(one.own_code, shown=bool(shown))]
        else:
            lines.append(f"  {_first_wrong(shown[0])}")
        for fault in answer.get("faults", ()):
            if fault["callable_location"] == {"file": one.file, "line": one.line}:
                lines += [f"  {text}" for text in _followed(fault)]
    for one in right:
        compared = [c for c in one.checks if c.run == "compiled"]
        counts = [
            (sum(c.what == what for c in compared), word)
            for what, word in (
                ("output", "output"),
                ("gradient", "gradient"),
                ("input", "written argument"),
                ("buffer", "written buffer"),
                ("parameter", "written weight"),
            )
        ]
        text = ", ".join(fmt.plural(count, word) for count, word in counts if count)
        against = "" if one.reference else ", without a run in float64"
        lines.append(f"\n{_callable(one)}: {text or 'nothing'} compared{against}")
        if one.outcome in _RIGHT:
            lines.append(f"  {_RIGHT[one.outcome]}")
    for each in answer["not_compared"]:
        subject = " ".join(filter(None, (each["callable"], each["name"])))
        lines.append(f"\nNot compared: {subject + ': ' if subject else ''}{each['reason']}")
    if any(one.random_state_same is False for one in outputs):
        lines.append("\nEager and compiled leave torch's random generators in different states.")
    indents = (len(text) - len(text.lstrip("\n ")) for text in lines)
    return "\n".join(text[:n] + one_line(text) for n, text in zip(indents, lines, strict=True))


def recordings_answer(answer: Mapping[str, Any]) -> str:
    """What ``traceview accuracy A B`` prints: the answer, then each pair of recordings."""
    pairs, several = answer["pairs"], len(answer["pairs"]) > 1
    wrong = {row["pair"] for row in answer["differences"]}
    said = {
        "agree": "The recordings agree.",
        "differ": f"{len(wrong)} of {len(pairs)} pairs of recordings differ."
        if several
        else "The recordings differ.",
        "not_compared": "Nothing was compared.",
    }
    lines = [said[answer["verdict"]]]
    for number, pair in enumerate(pairs):
        mine = {
            name: [row for row in answer[name] if row["pair"] == number]
            for name in ("environments", "callables", "differences", "not_compared")
        }
        lines.append(f"\nA is {one_line(pair['a'], 80)}, B is {one_line(pair['b'], 80)}.")
        for row in mine["environments"][:_MOST_SETTINGS]:
            values = " in A, ".join("not set" if row[k] is None else str(row[k]) for k in "ab")
            lines.append("  " + one_line(f"{row['name']}: {values} in B", 160))
        if not mine["environments"]:
            lines.append("  No recorded setting, version or device differs.")
        if len(mine["environments"]) > _MOST_SETTINGS:
            lines.append(f"  and {len(mine['environments']) - _MOST_SETTINGS} more settings")
        for one in mine["callables"]:
            lines += [f"  {text}" for text in _recorded(one)]
        for row in mine["differences"][:_MOST_ROWS]:
            lines.append(f"  {one_line(_apart(row), 300)}")
        if len(mine["differences"]) > _MOST_ROWS:
            lines.append(f"  and {len(mine['differences']) - _MOST_ROWS} more (--json has all)")
        for row in mine["not_compared"]:
            subject = " ".join(filter(None, (row["callable"], row["name"])))
            text = f"Not compared: {subject + ': ' if subject else ''}{row['reason']}."
            lines.append(f"  {one_line(text, 300)}")
    for fault in answer["faults"]:
        lines.append(f"\nCompiled of {fault['side']}:")
        lines += [f"  {one_line(text, 300)}" for text in _followed(fault)]
    return "\n".join(lines)


def _recorded(one: Mapping[str, Any]) -> Iterator[str]:
    """One callable: whether its inputs agree, and the first operator that differs."""
    place = f" ({names.at_line(PurePath(one['file']).name, one['line'])})" if one["file"] else ""
    inputs = {"equal": "inputs are equal", "rounding": "inputs agree but for rounding"}
    text = inputs.get(one["inputs"], "INPUTS DIFFER: that is the first difference")
    count = one.get("steps")
    done = fmt.plural(one["operators"], "operator") if count is None else fmt.plural(count, "step")
    yield one_line(f"{one['name']}{place}: {text}, {done} compared", 200)
    first = one["first"]
    if first is None:
        return
    where = first["location"]
    at = f" at {names.at_line(PurePath(where['file']).name, where['line'])}" if where else ""
    which = f"{first['operator']}{at}, {first['direction']}, operator {first['number'] + 1}"
    if first["excluded"]:
        yield one_line(f"Stops at {which}", 300)
    elif first["what"] == "operator":
        yield one_line(f"First to differ: {which}: its inputs agree, its result doesn't", 300)
    else:
        yield one_line(
            f"First to differ: an input of {which}, which no operator compared gave", 300
        )
    if first["unpaired"]:
        yield one_line(f"Before it, on one side only: {', '.join(first['unpaired'])}", 300)


def _apart(row: Mapping[str, Any]) -> str:
    """``output (eager of A, compiled of B): relative error 0.2, eager's 1e-07; [3] is 1 in A``."""
    sides = f" ({row['sides']})" if row["sides"] else ""
    text = row["reason"]
    if not text:
        text = f"relative error {tiny(row['relative_error'])}"
        text += f", eager's {tiny(row['eager_error'])}" if row["eager_error"] is not None else ""
    worst = row["worst"]
    if worst:
        text += f"; {worst['element']} is {worst['a']:.6g} in A, {worst['b']:.6g} in B"
    named = row["what"] in ("parameter", "operator", "operator input")
    name = f"{row['what']} {row['name']}" if named else row["name"]
    return f"{name}{sides}: {text}"


def _callable(one: ComparedOutputs) -> str:
    known = one.file and one.line
    place = f" ({names.at_line(PurePath(one.file or '').name, one.line or 0)})" if known else ""
    return f"{one.name or 'callable'}{place}"


def _difference(one: OutputDifference) -> str:
    name = one.output
    for kind in ("gradient of weight ", "gradient of "):
        if name.startswith(kind):
            name = f"{kind}`{name.removeprefix(kind)}`"
            break
    if one.why:
        return f"{name}: {one.why}"
    if one.differing:
        what = "differ" if one.relative_error is None else "NaN or infinite on one side"
        return f"{name}: {fmt.plural(one.differing, 'element')} {what}"
    if one.relative_error is None or one.eager_error is None:
        return f"{name}: differs from eager by up to {tiny(one.max_abs_diff)}"
    errors = f"{tiny(one.relative_error)}, eager's {tiny(one.eager_error)}"
    return f"{name}: relative error {errors} (both against float64)"


def _followed(fault: Mapping[str, Any]) -> Iterator[str]:
    """The operator, what does it, values, remedy and script, a line each."""
    if fault["operator"]:
        place = fault["location"]
        at = f" at {names.at_line(PurePath(place['file']).name, place['line'])}" if place else ""
        where = f" in module {fault['module']}" if fault["module"] and not place else ""
        several = len(fault["operators"]) > 1
        with_others = f" (with {', '.join(fault['operators'])})" if several else ""
        yield f"Operator: {fault['operator']}{at}{where}{with_others}"
    if fault["part"]:
        own = fault["part_location"]
        by = f", yours at {names.at_line(PurePath(own['file']).name, own['line'])}" if own else ""
        graph = f", in the {fault['graph']} graph" if fault["graph"] else ""
        name = f": {fault['part_name']}" if fault["part_name"] else ""
        kernel = f", kernel {fault['kernel']}" if fault["kernel"] else ""
        yield f"Done by: {fault['part']}{name}{by}{graph}{kernel}"
    worst = fault["worst"]
    if worst:
        compiled, eager, exact = (
            f"{worst[name]:.6g}" if worst[name] is not None else "NaN or infinite"
            for name in ("compiled", "eager", "float64")
        )
        where = f"{worst['result']}{worst['element'] or ''}"
        text = f"Worst element: {where} is {compiled}, in eager {eager}"
        yield f"{text}, float64 {exact}" if worst["float64"] is not None else text
    if fault["remedies"]:
        yield f"Right with: {fault['remedies'][0]}"
    if fault["script"]:
        yield f"Script: {fault['script']} (reproduces {fault['reproduced']} of 3)"
    elif fault["no_script"]:
        yield f"No script: {fault['no_script']}."
    if fault["not_found"]:
        yield f"Not found: {fault['not_found']}."


def _of_own_code(own: OwnCode, *, shown: bool) -> Iterator[str]:
    """What only the code has wrong that the script compiled, and what it holds."""
    if not shown:
        apart = f"{fmt.percent(own.relative_error)}; roundings make {tiny(own.noise)}"
        yield f"{own.name}: differs from eager by {apart}"
    yield "Only in the code that the script compiled: compiled again it is right."
    if own.recorded:
        yield "Its cudagraph replays what has changed since it was recorded."
    elif own.constant:
        yield f"It keeps what {own.constant}() gave while it was compiled."


def _first_wrong(one: OutputDifference) -> str:
    if one.stage is None:
        return f"In the {one.direction}; no stage of the compiler alone shows it."
    stage = STAGES.get(one.stage)
    which = f": {stage}" if stage else ""
    return f'In the {one.direction}, first with backend="{one.stage}"{which}.'
