"""The verdict as data: what happened, the parts of the difference, and what could still be gained.

The reasons are parts of what changed between eager and compiled (tables ``waterfall`` and
``waterfall_rows``), never the first entry of a list of advice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msgspec.structs import replace

from traceview.derive.causes import RECORDING, UNNAMED
from traceview.derive.effects.parts import OTHER_IDLE, OVERHEADS
from traceview.diagnosis.ahead import ahead_of_time
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Reason, Verdict
from traceview.diagnosis.tree import everyone, explains_all
from traceview.rules.finding import Finding
from traceview.tables import Tables
from traceview.words import names
from traceview.words.names import at_line

Explains = Mapping[str, frozenset[str]]

#: Effects that gather several causes: each category of the accounting in them is a part.
GATHERED = frozenset({OVERHEADS, OTHER_IDLE})
#: A finding explains a part of the difference if it accounts for this much of it.
EXPLAINED = 0.5
#: Parts below this share of the difference are one part together. Where there is no difference to
#: speak of, it is a share of the step: what is below that is not seen in any measurement.
LEAST_PART = 0.01
#: The effect of that part.
SMALL_PARTS = "small_parts"
#: The effect of compiles that recur between the steps.
COMPILING = "compiling_again"
#: The effect of a reason that is no part of a difference: why code was not compiled.
NOT_CAPTURED = "not_captured"
#: Stage of the rules on what Dynamo captures: only these can be why nothing was compiled.
CAPTURE = "TV1"
ENDINGS = {
    "stopped": "stopped by traceview when the plan was complete",
    "timeout": "ended by the time limit",
    "interrupted": "interrupted",
    "killed": "killed",
}

Row = dict[str, Any]


def measured(tables: Tables, focus: Focus) -> tuple[Verdict, str | None]:
    """(outcome and figures of the verdict, the reason of an outcome that is no measured one)."""
    row = focus.first(tables["speedups"])
    if not row:
        ahead = ahead_of_time(tables)
        reason = f"{ahead}. Such logs have no step to time" if ahead else None
        return Verdict("not_measured"), reason or "there are logs, but no timed run"
    # A rank that failed failed the job, whichever rank the figures are of.
    failures = (
        other
        for other in tables["speedups"].iter_rows(named=True)
        if other["outcome"] == "failed" and other["pass"] == row["pass"]
    )
    other = None if row["outcome"] == "failed" else next(failures, None)
    if other:
        row = {**row, "outcome": "failed", "reason": f"rank {other['rank']}: {other['reason']}"}
    if row["outcome"] == "not_compiled":  # both sides ran the same code: their ratio says nothing
        row = {**row, "speedup": None, "speedup_low": None, "compiled_ms": None}
    if hurts_by_compiles(row):  # the figures with compiles that recur
        eager, compiled = row["eager_mean_ms"], row["compiled_mean_ms"]
        figures = {"eager_ms": eager, "compiled_ms": compiled, "speedup": eager / compiled}
        pairs = (row["pairs_measured"] or 0) - (row["pairs_replayed"] or 0)
        known = {"basis": "all_blocks", "pairs_used": pairs, "pairs_measured": pairs}
        none = {"pairs_replayed": 0, "steps_timed": None, "speedup_low": None, "speedup_high": None}
        row = {**row, **figures, **known, **none}
    low, high = row["speedup_low"], row["speedup_high"]
    eager, compiled = row["eager_ms"], row["compiled_ms"]
    verdict = Verdict(
        outcome=row["outcome"],
        difference_ms=None if eager is None or compiled is None else compiled - eager,
        speedup=row["speedup"],
        speedup_interval=None if low is None or high is None else (low, high),
        eager_ms=eager,
        compiled_ms=compiled,
        clock=row["clock"],
        blocks=row["pairs_used"] or 0,
        blocks_measured=row["pairs_measured"] or 0,
        replayed=row["pairs_replayed"] or 0,
        steps_timed=row["steps_timed"] or 0,
        basis=row["basis"] or "none",
        ended=ending(focus.first(tables["runs"])),
    )
    return verdict, row["reason"]


def hurts_by_compiles(row: Row) -> bool:
    """Whether steps gain, and lose it again to compiles that recur (a row of ``speedups``)."""
    return row.get("outcome") == "hurt" and (row.get("speedup_low") or 0.0) > 1.0


def explained(
    verdict: Verdict,
    reason: str | None,
    tables: Tables,
    focus: Focus,
    findings: Sequence[Finding],
    explains: Explains,
) -> Verdict:
    """``verdict`` with its reasons and, apart from them, its advice.

    ``reason`` as ``measured`` gives it; ``findings`` in their final order; ``explains``: rule →
    effects or categories that its findings account for.
    """
    why: tuple[Reason, ...]
    unexplained = None
    if verdict.outcome == "failed":
        errors = [found for found in findings if found.severity == "error"]
        why = tuple(Reason("failure", None, None, f.confidence, f.code) for f in errors[:1])
    elif verdict.outcome == "not_compiled":
        why = _not_captured(findings)
    else:
        rows = focus.rows(tables["waterfall_rows"])
        bases = {row["effect"]: row["confidence"] for row in focus.rows(tables["waterfall"])}
        # Effect or category → code → ms of a step that the findings of that code account for.
        accounts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for cause in findings:
            # What a symptom accounts for is its cause's, if that explains the same.
            its: dict[tuple[str, str], float] = {}
            for found in everyone((cause,)):
                for name in explains.get(found.rule, ()):
                    owner = cause if name in explains.get(cause.rule, ()) else found
                    key = name, owner.code
                    due = found.cost.ms_per_step if found.due_ms is None else found.due_ms
                    its[key] = max(its.get(key, 0.0), due or 0.0)
            for (name, code), ms in its.items():
                accounts[name][code] += ms
        if hurts_by_compiles(timed := focus.first(tables["speedups"])):
            both = (timed["compiled_mean_ms"], timed["eager_mean_ms"])
            again = (both[0] - timed["compiled_ms"]) - (both[1] - timed["eager_ms"])
            recording = [row for row in rows if row["what"] == RECORDING]
            if sum(row["ms"] for row in recording) > timed["compiled_ms"]:
                # A step without compiles has no room for them: they are what recurs.
                rows = [row for row in rows if row not in recording]
                rows.append({**recording[0], "ms": again})
            else:
                rows = [*rows, {"effect": COMPILING, "what": "", "ms": again}]
                bases[COMPILING] = "measured"
        neutral = verdict.outcome == "neutral"
        of = verdict.eager_ms if neutral else verdict.difference_ms
        why = difference(
            rows, bases, verdict.difference_ms, accounts, least=LEAST_PART * abs(of or 0.0)
        )
        if neutral:  # shares of a difference within the noise mean nothing
            why = tuple(replace(part, share=None) for part in why)
        unexplained = verdict.difference_ms
        if unexplained is not None:
            unexplained -= sum(part.ms or 0.0 for part in why)
        if reason:  # it hurt although nothing was captured
            why += _not_captured(findings)
    named = {reason.finding for reason in why}
    serious = (found.code for found in findings if is_serious(found))
    advice = tuple(code for code in dict.fromkeys(serious) if code not in named)
    return replace(verdict, why=why, unexplained_ms=unexplained, advice=advice)


def difference(
    rows: Sequence[Row],
    bases: Mapping[str, str],
    difference_ms: float | None,
    accounts: Mapping[str, Mapping[str, float]],
    *,
    least: float = 0.0,
) -> tuple[Reason, ...]:
    """The named parts of ``difference_ms`` (compiled less eager), those along with it first.

    ``rows`` are of ``waterfall_rows``; ``bases``: effect → confidence; ``accounts``: effect or
    category → code of findings → ms that they account for. What a reader knows by one name is one
    part. Parts below ``least`` ms are one, at the end.
    """
    parts: dict[tuple[str, str | None], float] = defaultdict(float)
    named: dict[tuple[str, str], str] = {}  # effect, words → the first category called that
    for row in rows:
        if row["effect"] not in UNNAMED:
            what = (row["what"].lower() or None) if row["effect"] in GATHERED else None
            what = what and named.setdefault((row["effect"], names.cause(what)), what)
            parts[row["effect"], what] += row["ms"]
    sign = -1.0 if (difference_ms or 0.0) < 0 else 1.0
    small = [ms for ms in parts.values() if abs(ms) < least]
    found = []
    for (effect, what), ms in sorted(parts.items(), key=lambda item: -sign * item[1]):
        known = {**accounts.get(effect, {}), **accounts.get(what or "", {})}
        # The code that accounts for most of it, if that is enough to explain it.
        code = max(known, key=lambda code: known[code], default=None)
        explained = code and ms > 0 and known[code] >= EXPLAINED * ms
        share = ms / difference_ms if difference_ms else None
        basis = bases.get(effect, "derived")
        if ms and (len(small) < 2 or abs(ms) >= least):
            found.append(Reason(effect, ms, share, basis, code if explained else None, what))
    if len(small) > 1 and (ms := sum(small)):
        share = ms / difference_ms if difference_ms else None
        found.append(Reason(SMALL_PARTS, ms, share, "derived", None))
    return tuple(found)


def reasons_of(why: Sequence[Reason]) -> set[str]:
    """Codes of the findings that ``why`` names as reasons of the outcome."""
    shares: dict[str, float] = defaultdict(float)
    for part in why:
        if part.finding:
            shares[part.finding] += 1.0 if part.ms is None else part.share or 0.0
    return {code for code, share in shares.items() if share >= EXPLAINED}


def reasons_first(findings: Sequence[Finding], why: Sequence[Reason]) -> tuple[Finding, ...]:
    """``findings`` with those before the others that the verdict names as reasons of its outcome.

    These are what made the script fail, what kept code from being compiled, and what accounts for
    at least half of the difference. Errors without a known cost, such as wrong results, matter more
    than any time, so they keep their place. Of the same kind, the order stays.
    """
    reasons = reasons_of(why)

    def apart(finding: Finding) -> bool:
        return reasons.isdisjoint(found.code for found in everyone((finding,)))

    return tuple(sorted(findings, key=lambda finding: (not explains_all(finding), apart(finding))))


def is_serious(finding: Finding) -> bool:
    """Whether there is something to do about it for the sake of the step.

    What is wrong with the measurement or the script's own timer (TV9xx) slows no step down.
    """
    return (finding.severity != "info" or finding.weighs) and not finding.code.startswith("TV9")


def ending(run: Row) -> str | None:
    """How the process ended, in a few words."""
    kind, error = run.get("exit_kind"), run.get("error_type")
    if error not in (None, "SystemExit") and (kind != "exit" or run["exit_code"]):
        file = run["error_file"]
        where = f" at {at_line(PurePath(file).name, run['error_line'])}" if file else ""
        return f"raised {error}{where}"
    if kind == "exit":
        return f"ended by itself, exit code {run['exit_code']}"
    if kind == "signal":
        return f"ended by signal {run['exit_signal']}"
    return ENDINGS.get(str(kind))


def compiled_by_us(tables: Tables, focus: Focus) -> str:
    """A sentence that says so where traceview compiled what --compile named; else empty."""
    found = [row for row in focus.rows(tables["compile_targets"]) if row["status"] == "compiled"]
    if not found:
        return ""
    names = ", ".join(dict.fromkeys(row["name"] for row in found))
    return f"traceview compiled {names} for this run; the script itself does not."


def _not_captured(findings: Sequence[Finding]) -> tuple[Reason, ...]:
    """What kept code from being captured."""
    causes = [f for f in findings if f.code.startswith(CAPTURE) and is_serious(f)]
    return tuple(Reason(NOT_CAPTURED, None, None, f.confidence, f.code) for f in causes)
