"""The words and colours that every report gives the diagnosis' own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceview.derive.causes import UNEXPLAINED, UNNAMED
from traceview.derive.compiler.first_calls import LABELS
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.near import folders, near
from traceview.rules.finding import Cost, Finding, Location
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

# outcome: (mark, word). The mark and the word carry the meaning; colour only repeats it.
OUTCOMES = {
    "helped": ("▲", "Helped"),
    "neutral": ("=", "Neutral"),
    "hurt": ("▼", "Hurt"),
    "failed": ("✕", "The target failed"),
    "not_compiled": ("○", "Not compiled"),
    "not_measured": ("?", "Not measured"),
}
SEVERITIES = {"error": "✕", "warning": "!", "info": "i"}
CLOCKS = {"device": "device clock", "host": "host clock"}
category = names.category
CONFIDENCE = {
    "measured": "measured: the figure was timed",
    "derived": "derived: computed from recorded facts",
    "heuristic": "heuristic: a pattern that usually means this",
}
PHASES = {**LABELS, "inductor": "Inductor", "other": "other"}
# Compile phases wear colours of their own; what is not among them is "rest".
_PHASE_FAMILIES = {
    "dynamo": "elem",
    "aot": "norm",
    "inductor": "gemm",
    "scheduling": "attn",
    "codegen": "gen1",
    "kernel_compile": "gen2",
    "autotune": "opti",
    "backward": "conv",
    "cudagraph_recording": "comm",
    "first_run": "indx",
    "unexplained": "unex",
}
# Idle time is hatched always; its cause tints it.
_IDLE = {
    "idle_sync": "idle-sync",
    "idle_copy_wait": "idle-sync",
    "idle_communication": "idle-sync",
    "idle_python": "idle-py",
    "idle_graph_break": "idle-py",
    "idle_gc": "idle-py",
    "idle_guards": "idle-call",
    "idle_call_overhead": "idle-call",
    "idle_compile": "idle-call",
    "idle_compile_elsewhere": "idle-sync",
    "idle_data_loading": "idle-data",
    "idle_allocator": "idle-data",
}
_PHASE_OF = {label: part for part, label in LABELS.items()}
_FAMILIES = (
    ("generated_pointwise", "gen1"),
    ("generated_persistent", "gen3"),
    ("generated_reduction", "gen2"),
    ("generated", "gen4"),
    ("gemm", "gemm"),
    ("attention", "attn"),
    ("convolution", "conv"),
    ("elementwise", "elem"),
    ("reduction", "redu"),
    ("normalization", "norm"),
    ("indexing", "indx"),
    ("optimizer", "opti"),
    ("copy", "copy"),
    ("memset", "copy"),
    ("communication", "comm"),
    ("user_kernel", "user"),
    ("data_loading", "load"),
    ("graph_break", "brea"),
    ("compile", "comp"),
    ("python", "pyth"),
    ("sync", "idle-sync"),
    ("alloc", "idle-data"),
)


def family(category: str, kind: str = "busy") -> str:
    """The CSS class (less its ``f-``) that colours a category; idle and overhead are hatched."""
    if kind in UNNAMED or category == UNEXPLAINED:
        return "unex"
    if kind == "idle" or category.startswith("idle"):
        return _IDLE.get(category, "idle")
    if kind == "overhead" or category.startswith("overhead"):
        return "over"
    return next((name for prefix, name in _FAMILIES if category.startswith(prefix)), "rest")


def effect_family(effect: str) -> str | None:
    """The same of an effect that is of no cause; None: its sign colours it."""
    return "unex" if effect in UNNAMED else None


def generated(category: str) -> str:
    """``family`` of a generated kernel, whose category is torch's own: pointwise, reduction, …"""
    return family(category if category.startswith("generated") else f"generated_{category}")


def phase(name: str) -> str:
    """A compile phase as words; ``dynamo_s`` and ``dynamo`` are the same."""
    bare = name[:-2] if name.endswith("_s") else name
    return PHASES.get(bare, bare.replace("_", " "))


def part(name: str) -> str:
    """A part of the first call, where Inductor's own parts are told apart."""
    return LABELS.get(name, phase(name))


def phase_family(name: str) -> str:
    """The CSS class (less its ``f-``) of a compile phase, by torch's name or by its words."""
    name = _PHASE_OF.get(name, name)
    return _PHASE_FAMILIES.get(name[:-2] if name.endswith("_s") else name, "rest")


def outcome(name: str) -> tuple[str, str]:
    """Mark and word of an outcome."""
    return OUTCOMES.get(name, ("?", name.replace("_", " ")))


def first_sentence(text: str) -> tuple[str, str]:
    """The first sentence, and what follows it."""
    first, stop, rest = text.partition(". ")
    return first + stop.rstrip(), rest


def clock(name: str | None) -> str:
    """``device clock``, ``host clock`` or ``clock not recorded``."""
    return CLOCKS.get(name or "", f"{one_line(name, 30)} clock" if name else "clock not recorded")


def cost(value: Cost | None) -> str | None:
    """A cost with its unit and how often it is paid; None where it is not known."""
    if value is None:
        return None
    parts = []
    if value.ms_per_step is not None:
        parts.append(f"{fmt.milliseconds(value.ms_per_step)} per step")
    if value.seconds is not None:
        parts.append(f"{fmt.seconds(value.seconds)} once")
    return " and ".join(parts) or None


def whole_cost(finding: Finding) -> str | None:
    """What a finding costs with all that follows from it."""
    return cost(finding.whole_cost or finding.cost)


def by_itself(finding: Finding) -> str | None:
    """What a cause costs without its symptoms, where that is another figure than with them."""
    if not finding.symptoms or cost(finding.cost) == whole_cost(finding):
        return None
    return f"by itself {cost(finding.cost) or 'not known'}"


def said(text: str, diagnosis: Diagnosis) -> str:
    """``text`` with its files as ``near`` shows them."""
    for folder in folders(diagnosis):
        text = text.replace(folder + "/", "")
    return text


def target(diagnosis: Diagnosis) -> str:
    """The target as it was started, less the folder of its script."""
    return near(diagnosis.target, diagnosis)


def user_lines(places: Sequence[str], diagnosis: Diagnosis) -> str:
    """``model.py:20, 21, 22; loss.py:7``: places ``file:line`` by file, lines in order."""
    lines: dict[str, list[int]] = {}
    for place_ in places:
        file, _, number = place_.rpartition(":")
        if not file or not number.isdecimal():
            file, number = place_, ""
        lines.setdefault(near(file, diagnosis), []).extend([int(number[:9])] if number else [])
    parts = [
        file + (":" + ", ".join(map(str, sorted(set(numbers)))) if numbers else "")
        for file, numbers in lines.items()
    ]
    return "; ".join(parts)


def line(file: str | None, number: int | None, diagnosis: Diagnosis) -> str:
    """``train.py:41``; what is missing is said to be."""
    if not file:
        return fmt.MISSING
    return near(file, diagnosis) if number is None else f"{near(file, diagnosis)}:{number}"


def place(location: Location | None, diagnosis: Diagnosis) -> str | None:
    """``train.py:41 in step``; None where no line is known."""
    if location is None:
        return None
    where = line(location.file, location.line, diagnosis)
    return f"{where} in {location.function}" if location.function else where


def spot(finding: Finding, diagnosis: Diagnosis) -> str | None:
    """The user's own line, and the library's that it led to: ``train.py:41 in step → lib.py:7``."""
    places = [place(at, diagnosis) for at in (finding.location, finding.inside)]
    return " → ".join(found for found in places if found) or None


def break_even(diagnosis: Diagnosis) -> str | None:
    """Break-even in steps, or why there is none; None where it is not known."""
    if diagnosis.break_even_steps is not None:
        return fmt.plural(diagnosis.break_even_steps, "step")
    return {
        "hurt": "never: no step is faster",
        "neutral": "none: no measurable difference",
    }.get(diagnosis.verdict.outcome)


def when(created: str | None) -> str | None:
    """An ISO 8601 time as people write it: ``2026-03-01 12:00:00 UTC``."""
    if created is None or created[10:11] != "T":
        return created
    return f"{created[:10]} {created[11:]}".replace("+00:00", " UTC")


def blocks(diagnosis: Diagnosis) -> str:
    """What the two times rest on, in one clause."""
    verdict = diagnosis.verdict
    if verdict.eager_ms is None and verdict.compiled_ms is None:
        return "no step was timed"
    parts = [f"median per step, {clock(verdict.clock)}"]
    if verdict.blocks:
        parts.append(f"{verdict.blocks} of {fmt.plural(verdict.blocks_measured, 'block pair')}")
    if verdict.steps_timed:
        parts.append(f"{fmt.plural(verdict.steps_timed, 'step')} timed")
    rank, ranks = (diagnosis.environment.get(name) for name in ("rank", "ranks"))
    if rank is not None and ranks is not None and ranks > 1:
        parts.append(f"rank {rank} of {ranks}")
    return ", ".join(parts)


def setting(environment: dict[str, Any], *names: str) -> str | None:
    """The first of ``names`` that the environment holds, at the top or one level down."""
    levels = [environment, *(part for part in environment.values() if isinstance(part, dict))]
    for name in names:
        for level in levels:
            value = level.get(name)
            if value not in (None, "") and not isinstance(value, dict | list):
                return str(value)
    return None


def peak_memory(diagnosis: Diagnosis) -> str | None:
    """Peak memory, eager → compiled: ``2.00 GiB → 1.00 GiB``; None where neither is known."""
    eager, compiled = (diagnosis.counts.get(name) for name in ("eager", "compiled"))
    peaks = [counts.peak_bytes if counts else None for counts in (eager, compiled)]
    if all(peak is None for peak in peaks):
        return None
    first, second = (fmt.size(peak) for peak in peaks)
    return f"{first} in both" if first == second else f"{first} → {second}"


def kernels(diagnosis: Diagnosis) -> tuple[str, str] | None:
    """What runs in a step, and how often eager → compiled: ``("Kernels", "37 → 3")``."""
    stances = [diagnosis.counts.get(name) for name in ("eager", "compiled")]
    figures = [counts.kernels if counts else None for counts in stances]
    if all(figure is None for figure in figures):
        return None
    device = any(counts and counts.device_busy_ms is not None for counts in stances)
    first, second = map(fmt.count, figures)
    return "Kernels" if device else "Operators", f"{first} → {second}"


def facts(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Name, value and small print of the figures beside the verdict; unknown ones are left out."""
    compile_time, ran = diagnosis.compile_time, kernels(diagnosis)
    cold = compile_time.seconds if compile_time.seconds or diagnosis.compiles else None
    warm = compile_time.warm_seconds
    found = (
        ("Break-even", break_even(diagnosis), ""),
        ("Cold compile", None if cold is None else fmt.seconds(cold), "host clock"),
        ("Warm compile", None if warm is None else fmt.seconds(warm), "host clock"),
        ("Peak memory", peak_memory(diagnosis), "eager → compiled"),
        (f"{ran[0]} per step" if ran else "", ran[1] if ran else None, "eager → compiled"),
    )
    return [(name, value, small) for name, value, small in found if value is not None]


def unchecked(diagnosis: Diagnosis) -> list[tuple[str, str | None, list[str]]]:
    """What the unchecked rules need, how to get it, and the rules that need it: one row a need."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for row in diagnosis.not_checked:
        groups.setdefault((row.needs, row.command), []).append(f"{row.code} {row.rule}")
    rows = [(needs, command, rules) for (needs, command), rules in groups.items()]
    return sorted(rows, key=lambda row: -len(row[2]))


def verdict(d: Diagnosis) -> tuple[str, str]:
    """The headline with what it rests on, and what follows it."""
    v = d.verdict
    opening = f"{v.headline} ({v.support})." if v.support else f"{v.headline}."
    return said(opening, d), said(" ".join(v.remarks), d)


def ended(d: Diagnosis) -> str | None:
    """How a failed script ended, where the verdict's sentence does not say it already."""
    how = d.verdict.ended
    if d.verdict.outcome != "failed" or not how or how in d.verdict.sentence:
        return None
    return said(how, d)


def no_findings(d: Diagnosis) -> str:
    """What to say where no rule fired."""
    if d.verdict.outcome == "failed":
        return "No rule explains this failure."
    return "No rule found anything to report."
