"""How every report words the diagnosis: verdict, costs, places, facts, links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from traceview.diagnosis.model import Diagnosis, Region
from traceview.diagnosis.near import folders, near
from traceview.diagnosis.sentence import is_noisy
from traceview.rules.finding import Cost, Finding, Location
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

# Outcome: (mark, word). The mark and the word carry the meaning; colour only repeats it.
OUTCOMES = {
    "helped": ("▲", "Helped"),
    "neutral": ("=", "Neutral"),
    "hurt": ("▼", "Hurt"),
    "failed": ("✕", "The script failed"),
    "not_compiled": ("○", "Not compiled"),
    "not_measured": ("?", "Not measured"),
}
SEVERITIES = {"error": "✕", "warning": "!", "info": "i"}
_GRAPH_BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{}.html"
_GRAPH_BREAK_ID = re.compile(r"GB(\d{4})", re.IGNORECASE)


def outcome(name: str) -> tuple[str, str]:
    """Mark and word of an outcome."""
    return OUTCOMES.get(name, ("?", name.replace("_", " ")))


def verdict(d: Diagnosis) -> tuple[str, str]:
    """The headline with what it rests on, and what follows it."""
    v = d.verdict
    opening = f"{v.headline} ({v.support})." if v.support else f"{v.headline}."
    return said(opening, d), said(" ".join(v.remarks), d)


def ended(d: Diagnosis) -> str | None:
    """How a failed script ended, where the verdict's sentence does not say it already."""
    how = said(d.verdict.ended or "", d)
    if d.verdict.outcome != "failed" or how in said(d.verdict.sentence, d):
        return None
    return how


def no_findings(d: Diagnosis) -> str:
    """What to say where no rule fired."""
    if d.verdict.outcome == "failed":
        return "No rule explains this failure."
    return "No rule found anything to report."


def blocks(diagnosis: Diagnosis) -> str:
    """What the two times rest on, in one clause."""
    verdict = diagnosis.verdict
    if verdict.eager_ms is None and verdict.compiled_ms is None:
        return "no step was timed"
    average = "mean" if verdict.basis == "all_blocks" else "median"
    parts = [f"{average} per step, {clock(verdict.clock)}"]
    if verdict.blocks:
        parts.append(f"{verdict.blocks} of {fmt.plural(verdict.blocks_measured, 'block pair')}")
    if verdict.steps_timed:
        parts.append(f"{fmt.plural(verdict.steps_timed, 'step')} timed")
    rank, ranks = (diagnosis.environment.get(name) for name in ("rank", "ranks"))
    if rank is not None and ranks is not None and ranks > 1:
        parts.append(f"rank {rank} of {ranks}")
    return ", ".join(parts)


def break_even(diagnosis: Diagnosis) -> str | None:
    """Break-even in steps, or why there is none; None where it is not known."""
    if diagnosis.break_even_steps is not None:
        return fmt.plural(diagnosis.break_even_steps, "step")
    return {
        "hurt": "never: it goes on compiling"
        if diagnosis.verdict.basis == "all_blocks"
        else "never: no step is faster",
        "neutral": "not known: too noisy"
        if is_noisy(diagnosis.verdict)
        else "none: no measurable difference",
    }.get(diagnosis.verdict.outcome)


def facts(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Name, value and small print of the figures next to the verdict; unknown ones are left out."""
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


def kernels(diagnosis: Diagnosis) -> tuple[str, str] | None:
    """What runs in a step, and how often eager → compiled: ``("Kernels", "37 → 3")``."""
    stances = [diagnosis.counts.get(name) for name in ("eager", "compiled")]
    figures = [counts.kernels if counts else None for counts in stances]
    if all(figure is None for figure in figures):
        return None
    device = any(counts and counts.device_busy_ms is not None for counts in stances)
    first, second = map(fmt.count, figures)
    return "Kernels" if device else "Operators", f"{first} → {second}"


def peak_memory(diagnosis: Diagnosis) -> str | None:
    """Peak memory, eager → compiled: ``2.00 GiB → 1.00 GiB``; None where neither is known."""
    eager, compiled = (diagnosis.counts.get(name) for name in ("eager", "compiled"))
    peaks = [counts.peak_bytes if counts else None for counts in (eager, compiled)]
    if all(peak is None for peak in peaks):
        return None
    first, second = (fmt.size(peak) for peak in peaks)
    return f"{first} in both" if first == second else f"{first} → {second}"


def setting(environment: dict[str, Any], *names: str) -> str | None:
    """The first of ``names`` that the environment holds, at the top or one level down."""
    levels = [environment, *(part for part in environment.values() if isinstance(part, dict))]
    for name in names:
        for level in levels:
            value = level.get(name)
            if value not in (None, "") and not isinstance(value, dict | list):
                return str(value)
    return None


def when(created: str | None) -> str | None:
    """An ISO 8601 time as people write it: ``2026-03-01 12:00:00 UTC``."""
    if created is None or created[10:11] != "T":
        return created
    return f"{created[:10]} {created[11:]}".replace("+00:00", " UTC")


def clock(name: str | None) -> str:
    """``device clock``, ``host clock`` or ``clock not recorded``."""
    return names.CLOCKS.get(
        name or "", f"{one_line(name, 30)} clock" if name else "clock not recorded"
    )


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
        names.at_line(file, *sorted(set(numbers))) if numbers else file
        for file, numbers in lines.items()
    ]
    return "; ".join(parts)


def line(file: str | None, number: int | None, diagnosis: Diagnosis) -> str:
    """As ``names.at_line`` has it, ``train.py:41``; what is missing is "not recorded"."""
    if not file:
        return fmt.MISSING
    shown = near(file, diagnosis)
    return shown if number is None else names.at_line(shown, number)


def callable(region: Region, diagnosis: Diagnosis) -> str:
    """``matmul() at bench.py:20, backend=eager``."""
    given = [f"{name}={value}" for name, value in region.arguments.items() if value is not None]
    where = line(region.call_file, region.call_line, diagnosis)
    return ", ".join((f"{region.name}() at {where}", *given))


def of_callable(region: Region) -> str:
    """A callable's own outcome, or why there is none."""
    if region.speedup_interval is None:
        return f"not measured: {region.not_measured or 'no step was timed'}"
    word = outcome(region.outcome or "")[1].lower()
    return f"{word}, {fmt.plural(region.blocks or 0, 'block pair')}"


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


def unchecked(diagnosis: Diagnosis) -> list[tuple[str, str | None, list[str]]]:
    """What the unchecked rules need, how to get it, and the rules that need it: one row a need."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for row in diagnosis.not_checked:
        groups.setdefault((row.needs, row.command), []).append(f"{row.code} {row.rule}")
    rows = [(needs, command, rules) for (needs, command), rules in groups.items()]
    return sorted(rows, key=lambda row: -len(row[2]))


def link(path: str | None) -> str | None:
    """A link to a file next to the report; None if ``path`` leaves the run folder."""
    if not path or path.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", path):
        return None
    if len(path) > 1000:
        return None
    # The colon of "javascript:" is quoted too, and "./" keeps "//host" from naming a host.
    return "./" + quote(path, safe="/", errors="replace")


def graph_break_page(gb_id: str | None) -> str | None:
    """torch's page about a kind of graph break; None for what is not one of its ids."""
    match = _GRAPH_BREAK_ID.fullmatch(gb_id or "")
    return _GRAPH_BREAK_PAGE.format(f"gb{match.group(1)}") if match else None
