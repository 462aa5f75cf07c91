"""The words and colours that every report gives the diagnosis' own names."""

from __future__ import annotations

from typing import Any

from traceview.diagnosis.model import Diagnosis
from traceview.reports import format as fmt
from traceview.rules.finding import Cost, Location

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
CONFIDENCE = {
    "measured": "measured: the figure was timed",
    "derived": "derived: computed from recorded facts",
    "heuristic": "heuristic: a pattern that usually means this",
}
PHASES = {
    "dynamo": "Dynamo tracing",
    "aot": "AOTAutograd",
    "inductor": "Inductor",
    "codegen": "code generation",
    "autotune": "autotuning",
    "backward": "backward",
    "other": "other",
}
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
    ("python", "pyth"),
)


def family(category: str, kind: str = "busy") -> str:
    """The CSS class (less its ``f-``) that colours a category; idle and overhead are hatched."""
    if kind == "idle" or category.startswith("idle"):
        return "idle"
    if kind == "overhead" or category.startswith("overhead"):
        return "over"
    return next((name for prefix, name in _FAMILIES if category.startswith(prefix)), "rest")


def generated(category: str) -> str:
    """``family`` of a generated kernel, whose category is torch's own: pointwise, reduction, …"""
    return family(category if category.startswith("generated") else f"generated_{category}")


def category(name: str) -> str:
    """A category as words: ``generated pointwise``, ``idle: launch bound``."""
    for kind in ("idle", "overhead"):
        if name.startswith(f"{kind}_"):
            return f"{kind}: " + name[len(kind) + 1 :].replace("_", " ")
    return name.replace("_", " ")


def phase(name: str) -> str:
    """A compile phase as words; ``dynamo_s`` and ``dynamo`` are the same."""
    bare = name[:-2] if name.endswith("_s") else name
    return PHASES.get(bare, bare.replace("_", " "))


def outcome(name: str) -> tuple[str, str]:
    """Mark and word of an outcome."""
    return OUTCOMES.get(name, ("?", name.replace("_", " ")))


def first_sentence(text: str) -> tuple[str, str]:
    """The first sentence, and what follows it."""
    first, stop, rest = text.partition(". ")
    return first + stop.rstrip(), rest


def clock(name: str | None) -> str:
    """``device clock``, ``host clock`` or ``clock not recorded``."""
    return CLOCKS.get(name or "", f"{name} clock" if name else "clock not recorded")


def cost(value: Cost) -> str:
    """A cost with its unit and how often it is paid."""
    if value.ms_per_step is not None:
        return f"{fmt.milliseconds(value.ms_per_step)} per step"
    if value.seconds is not None:
        return f"{fmt.seconds(value.seconds)} once"
    return "cost not known"


def near(file: str, diagnosis: Diagnosis) -> str:
    """``file`` as seen from the target's working directory, if it lies below it."""
    folder = str(diagnosis.environment.get("cwd") or "").rstrip("/")
    return file[len(folder) + 1 :] if folder and file.startswith(folder + "/") else file


def line(file: str | None, number: int | None, diagnosis: Diagnosis) -> str:
    """``train.py:41``; what is missing is said to be."""
    if not file:
        return fmt.MISSING
    return near(file, diagnosis) if number is None else f"{near(file, diagnosis)}:{number}"


def place(location: Location | None, diagnosis: Diagnosis) -> str:
    """``train.py:41 in step``; a location that is missing is said to be."""
    if location is None:
        return "no line recorded"
    where = line(location.file, location.line, diagnosis)
    return f"{where} in {location.function}" if location.function else where


def break_even(diagnosis: Diagnosis) -> str:
    """Break-even in steps, or why there is none."""
    if diagnosis.break_even_steps is not None:
        return fmt.plural(diagnosis.break_even_steps, "step")
    return {
        "hurt": "never: no step is faster",
        "neutral": "none: no measurable difference",
    }.get(diagnosis.verdict.outcome, fmt.MISSING)


def when(created: str | None) -> str | None:
    """An ISO 8601 time as people write it: ``2026-03-01 12:00:00 UTC``."""
    return created.replace("T", " ").replace("+00:00", " UTC") if created else None


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


def peak_memory(diagnosis: Diagnosis) -> str:
    """Peak memory of both stances: eager → compiled: ``2.00 GiB → 1.00 GiB``."""
    eager, compiled = (diagnosis.counts.get(name) for name in ("eager", "compiled"))
    peaks = [counts.peak_bytes if counts else None for counts in (eager, compiled)]
    if all(peak is None for peak in peaks):
        return fmt.MISSING
    return " → ".join(fmt.size(peak) for peak in peaks)
