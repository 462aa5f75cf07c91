"""The verdict in words, made from the verdict's own data: read in ten seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from traceview.derive.causes import PYTHON
from traceview.diagnosis.job.model import Job
from traceview.diagnosis.model import AccountRow, Reason, Verdict
from traceview.diagnosis.tree import everyone
from traceview.diagnosis.verdict import NOT_CAPTURED
from traceview.rules.finding import Finding
from traceview.words.names import category, effect
from traceview.words.numbers import milliseconds, percent, plural, ratio, together
from traceview.words.text import listed

#: A category that fills this part of both steps leaves torch.compile nothing to win.
DOMINANT = 0.6
#: An interval from 0.95 to 1.05 is wide, but still says "about the same"; a wider one does not.
NOISY = 1.1
#: That compiling helped or hurt is sure when the interval says so; by how much, not if it is wide.
VERY_NOISY = 1.5
#: Parts of the difference that a sentence has room for, and the least share worth a word.
MOST_PARTS, LEAST_SHARE = 3, 0.03
#: Gains and losses below this part of an eager step are not worth saying that they cancel out.
CANCELLED = 0.05

Accounting = Mapping[str, Sequence[AccountRow]]


def worded(
    verdict: Verdict,
    reason: str | None,
    findings: Sequence[Finding],
    accounting: Accounting,
    *,
    others: str = "",
    story: Job | None = None,
) -> Verdict:
    """``verdict`` with its headline, remarks and sentence.

    ``reason`` of an outcome that is no measured one; ``findings`` give their titles; ``others``:
    a sentence on other callables; ``story``: a post-mortem's job, whose words come first.
    """
    headline = story.headline if story else _headline(verdict, reason)
    support = _support(verdict) if _is_timed(verdict) else ""
    titles = {found.code: found.title.rstrip(".") for found in reversed([*everyone(findings)])}
    remarks = tuple(
        filter(
            None,
            (
                *(story.remarks if story else ()),
                *_remarks(verdict, reason, titles, accounting),
                others,
            ),
        )
    )
    opening = f"{headline} ({support})." if support else headline.rstrip(".") + "."
    return replace(
        verdict,
        headline=headline.rstrip("."),
        support=support,
        remarks=remarks,
        sentence=" ".join((opening, *remarks)),
    )


def _headline(verdict: Verdict, reason: str | None) -> str:
    step = ""
    if verdict.eager_ms is not None and verdict.compiled_ms is not None:
        compiled, eager = together(verdict.compiled_ms, verdict.eager_ms)
        step = f"a step takes {compiled} instead of {eager}"
    match verdict.outcome:
        case "helped":
            return f"torch.compile helped: {step}"
        case "hurt":
            return f"torch.compile hurt: {step}"
        case "failed":
            said = reason or "the script failed"
            return said[:1].upper() + said[1:]
        case "not_compiled":
            return f"Nothing was compiled: {reason}"
        case "not_measured":
            return f"No verdict: {reason or 'no step was timed'}"
    low, high = verdict.speedup_interval or (1.0, 1.0)
    if is_noisy(verdict):
        return f"Too noisy to tell: {ratio(low)} to {ratio(high)}"
    if low <= 1.0 <= high:
        return f"torch.compile made no measurable difference: {step}"
    return f"torch.compile made next to no difference: {step}"


def is_noisy(verdict: Verdict) -> bool:
    """Whether the interval allows no statement on a neutral outcome."""
    low, high = verdict.speedup_interval or (1.0, 1.0)
    return verdict.outcome == "neutral" and high > NOISY * low


def _is_timed(verdict: Verdict) -> bool:
    """Whether the outcome is a measured one."""
    return verdict.speedup is not None and verdict.outcome in ("helped", "hurt", "neutral")


def _drifted(verdict: Verdict) -> bool:
    """Whether the ratio of the pairs and the two medians disagree on which side is faster."""
    eager, compiled, speedup = verdict.eager_ms, verdict.compiled_ms, verdict.speedup
    if not _is_timed(verdict) or is_noisy(verdict) or not (eager and compiled and speedup):
        return False
    medians, pairs = round(eager / compiled, 2), round(speedup, 2)
    return min(medians, pairs) < 1.0 < max(medians, pairs)


def _clock(verdict: Verdict) -> str:
    return "device time" if verdict.clock == "device" else "host time"


def _support(verdict: Verdict) -> str:
    """6.90×, 95 % interval 6.70× to 7.00×, device time, 12 block pairs."""
    parts = [f"median {ratio(verdict.speedup)}" if is_noisy(verdict) else ratio(verdict.speedup)]
    if verdict.speedup_interval is not None and not is_noisy(verdict):
        low, high = verdict.speedup_interval
        parts.append(f"95 % interval {ratio(low)} to {ratio(high)}")
    parts.append(_clock(verdict))
    if verdict.basis == "two_runs":
        parts.append(f"two runs, {plural(verdict.steps_timed, 'step')}")
    else:
        of_all = "" if verdict.replayed == verdict.blocks else f"{verdict.replayed} "
        pairs = plural(verdict.blocks, "block pair")
        parts.append(f"{pairs}, {of_all}replayed" if verdict.replayed else pairs)
    return ", ".join(parts)


def _remarks(
    verdict: Verdict, reason: str | None, titles: Mapping[str, str], accounting: Accounting
) -> Iterable[str]:
    """What follows the headline: noise, reasons, advice."""
    low, high = verdict.speedup_interval or (1.0, 1.0)
    if _drifted(verdict):
        yield (
            "Step times drifted during the run: the ratio compares blocks that follow each other, "
            "and the two medians do not."
        )
    all_replayed = verdict.replayed and verdict.replayed == verdict.blocks
    if all_replayed and verdict.outcome != "not_compiled":
        yield (
            "The script ended too early, so its calls were replayed on copies of their inputs, "
            "without the code between them."
        )
    match verdict.outcome:
        case "failed":
            yield from (f"Cause: {titles[why.finding]}." for why in verdict.why if why.finding)
            if verdict.eager_ms is not None and verdict.compiled_ms is not None:
                compiled, eager = together(verdict.compiled_ms, verdict.eager_ms)
                figures = f"{compiled} instead of {eager} ({_support(verdict)})"
                yield f"Until then, a step took {figures}."
            return
        case "not_compiled":
            yield _not_captured(verdict, titles)
        case "not_measured":
            sides = (("in eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
            known = [f"{milliseconds(ms)} {name}" for name, ms in sides if ms is not None]
            steps = plural(verdict.steps_timed, "step")
            if known:
                yield f"A step takes {' and '.join(known)} ({_clock(verdict)}, {steps})."
        case "helped" | "hurt":
            if reason:
                yield f"{reason}."
                yield _not_captured(verdict, titles)
            if high > VERY_NOISY * low:
                yield "By how much is uncertain: run longer or on a quieter machine."
            yield _difference(verdict)
        case "neutral" if is_noisy(verdict):
            compiled, eager = together(verdict.compiled_ms or 0.0, verdict.eager_ms or 0.0)
            yield f"The medians are {compiled} compiled and {eager} in eager."
            yield "Run longer or on a quieter machine."
        case "neutral":
            yield _same_in_both(accounting) or _cancelled(verdict)
    # That a result is wrong (TV7xx) matters more than any cost.
    wrong = [code for code in verdict.advice if code.startswith("TV7")]
    if wrong:
        yield f"More important: {titles[wrong[0]]}."
    elif verdict.advice:
        named = any(why.finding for why in verdict.why)  # then that one is the top finding
        yield f"{'Also found' if named else 'Top finding'}: {titles[verdict.advice[0]]}."


def _not_captured(verdict: Verdict, titles: Mapping[str, str]) -> str:
    """The first cause of code that was not captured."""
    causes = [why.finding for why in verdict.why if why.effect == NOT_CAPTURED and why.finding]
    # What cap-nothing-compiled finds is the headline already.
    return next((f"Cause: {titles[code]}." for code in causes if code != "TV110"), "")


def _difference(verdict: Verdict) -> str:
    """Where a difference comes from, the largest part first; or that it is not explained.

    "The extra 1.75 ms go to slower fused kernels 0.900 ms (51 %) and guard checks 0.300 ms (17 %,
    TV301)". Shares are left out where gains and losses make one of them larger than the whole.
    """
    change, left = verdict.difference_ms or 0.0, verdict.unexplained_ms or 0.0
    if not verdict.difference_ms or not any(why.ms for why in verdict.why):
        return "Where the time went was not recorded: no profile shows the work of both sides."
    if abs(left) > 0.5 * abs(change):
        whole, unexplained = together(abs(change), abs(left))
        return (
            f"Less than half of the {whole} is explained: the profile leaves {unexplained} "
            "unexplained. Compare the step timelines in the report."
        )
    reasons = [why for why in verdict.why if why.ms and abs(why.share or 0.0) >= LEAST_SHARE]
    along = [why for why in reasons if (why.share or 0.0) > 0][:MOST_PARTS]
    against = [why for why in reversed(reasons) if (why.share or 0.0) < 0][:MOST_PARTS]
    rest = [left] if abs(left) >= LEAST_SHARE * abs(change) else []
    shown = [*along, *against]
    whole, *parts = together(*map(abs, (change, *(why.ms or 0.0 for why in shown), *rest)))
    shares = all(abs(why.share or 0.0) <= 1.0 for why in shown)
    said = []  # guard checks 0.300 ms (17 %, TV301)
    for why, ms in zip(shown, parts, strict=False):
        share = percent(abs(why.share or 0.0)) if shares else None
        bracket = ", ".join(filter(None, (share, why.finding)))
        part = f"{effect(why.effect, why.ms or 0.0, why.what)} {ms}"
        said.append(f"{part} ({bracket})" if bracket else part)
    opening = f"The extra {whole} go to" if change > 0 else f"The {whole} saved come from"
    clauses = [f"{opening} {listed(said[: len(along)])}"]
    if against:
        how = "saved elsewhere" if change > 0 else "lost again"
        clauses.append(f"{how}: {listed(said[len(along) :])}")
    if rest:
        more = "" if left * change > 0 else "another "
        clauses.append(f"{more}{parts[-1]} unexplained")
    return "; ".join(clauses) + "."


def _cancelled(verdict: Verdict) -> str:
    """What one effect saves and another one costs, where both count in a step."""
    least = CANCELLED * (verdict.eager_ms or 0.0)
    saved = [why for why in verdict.why if (why.ms or 0.0) < -least]
    lost = [why for why in verdict.why if (why.ms or 0.0) > least]
    if not saved or not lost or not least:
        return ""

    def named(parts: list[Reason]) -> str:
        top = max(parts, key=lambda why: abs(why.ms or 0.0))
        name = effect(top.effect, top.ms or 0.0, top.what)
        return f"{name} ({milliseconds(abs(top.ms or 0.0))})"

    largest = f"the largest gain is {named(saved)}, the largest loss {named(lost)}"
    return f"Gains and losses cancel out: {largest}."


def _same_in_both(accounting: Accounting) -> str:
    """The category of work, or Python between it, that fills most of both steps.

    Empty where there is none, or where the profile found more of it than the timed step is long.
    """
    parts: dict[str, list[float]] = {}
    for stance in ("eager", "compiled"):
        rows = accounting.get(stance, ())
        total = sum(row.ms for row in rows)
        for row in rows:
            if (row.kind == "busy" or row.category == PYTHON) and total > 0:
                parts.setdefault(row.category, []).append(row.ms / total)
    both = {name: min(found) for name, found in parts.items() if len(found) == 2}
    name = max(both, key=lambda key: both[key], default=None)
    if name is None or not DOMINANT <= both[name] <= 1:
        return ""
    return f"In eager and compiled alike, {percent(both[name])} of the step is {category(name)}."
