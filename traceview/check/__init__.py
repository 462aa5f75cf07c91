"""Check one run against limits, and against a baseline if there is one.

A limit that can't be checked, or not for noise, fails unless the user allows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from traceview.check.limits import ALL, NAMED, Limits
from traceview.check.model import Checked, Result, Status
from traceview.compare import Side, compare
from traceview.compare.causes import unseen
from traceview.compare.figures import Kind, Measured, kinds, nothing_seen
from traceview.compare.model import Comparison, Place
from traceview.compare.noise import IN_BLOCKS, Sides, blocks
from traceview.diagnosis.sentence import VERY_NOISY, is_noisy
from traceview.diagnosis.tree import everyone
from traceview.rules.finding import SEVERITIES

__all__ = ["Checked", "Limits", "Result", "check"]

MOST_PLACES = 10
_TOO_NOISY = "too noisy to tell, run longer or on a quieter machine"
_WORSE = {"errors": ("error",), "warnings": ("error", "warning"), "findings": SEVERITIES}
_OWN_NAMES = {limit: name for name, limit in NAMED.items()}


def check(run: Side, limits: Limits, baseline: Side | None = None) -> Checked:
    """The result of every limit, violations first."""
    comparison = compare(baseline, run) if baseline else None
    gate = _Gate(run, limits, baseline, comparison)
    results = [gate.judged(result) for result in gate.results()]
    order = {"violated": 0, "too_noisy": 1, "not_checked": 2, "passed": 3}
    results.sort(key=lambda result: order[result.status])
    environment = run.diagnosis.environment
    argv, cwd = environment.get("argv"), environment.get("cwd")
    cwd = cwd if isinstance(cwd, str) else None
    name = argv[0] if isinstance(argv, list) and argv else None
    script = None
    if isinstance(name, str) and name.endswith(".py"):
        path = name if cwd is None else str(PurePosixPath(cwd, name))
        script = run.place(path, 1, None)
    return Checked(
        passed=not any(result.status in ("violated", "too_noisy") for result in results),
        run=run.subject(),
        baseline=baseline.subject() if baseline else None,
        results=tuple(results),
        cwd=cwd,
        script=script,
        unreadable=run.diagnosis.reading.unreadable,
    )


class _Gate(msgspec.Struct, frozen=True):
    run: Side
    limits: Limits
    baseline: Side | None
    comparison: Comparison | None

    def judged(self, result: Result) -> Result:
        """With its fingerprint; what could not be checked is violated, unless it may be skipped."""
        if result.status == "not_checked" and self.limits.missing == "fail":
            result = replace(result, status="violated")
        elif result.status == "too_noisy" and self.limits.missing == "skip":
            result = replace(result, status="not_checked")
        where = ("", "", "")
        for place in result.places[:1]:
            number = "" if place.line is None else str(place.line)
            text = self.run.text(place.path, place.line) or number
            where = (place.file, place.function or "", text)
        parts = (result.limit, result.code or "", *where)
        return replace(result, fingerprint=sha256("\0".join(parts).encode()).hexdigest()[:32])

    def results(self) -> Iterator[Result]:
        verdict = self.run.diagnosis.verdict
        if verdict.outcome == "failed" and not self.limits.allow_failure:
            why = verdict.sentence
            yield Result("script", "violated", "The script failed", why=why, severity="error")
        by_key = {kind.key: kind for kind in kinds()}
        for way, limits in (("max", self.limits.highest), ("min", self.limits.lowest)):
            for key, wanted in limits.items():
                name = _OWN_NAMES.get((key, way), f"{way} {key}")
                yield self._held(name, by_key[key], wanted, way)
        for key, part in self.limits.growth.items():
            old = by_key[key].read(self.baseline).value if self.baseline else None
            most = None if old is None else old * (1 + part)
            yield self._held(f"max-growth {key}", by_key[key], most, "max", old)
        for severity, many in self.limits.findings.items():
            yield self._seen(self._number_of_findings(severity, many))
        for word in self.limits.no:
            none = {
                "new-findings": self._no_new,
                "slowdowns": self._no_slowdowns,
                "damage": self._no_damage,
            }.get(word)
            found = none() if none else self._none_of(f"no {word}", _WORSE[word])
            yield from found if word == "damage" else map(self._seen, found)

    def _seen(self, result: Result) -> Result:
        """``result``, unless it passes only because nothing was recorded that could violate it."""
        blind = nothing_seen(self.run)
        if result.status != "passed" or not blind:
            return result
        return replace(result, status="not_checked", why=blind, unit=None)

    def _no_damage(self) -> Iterator[Result]:
        d = self.run.diagnosis
        pieces = d.reading.unreadable
        read = d.reading.records or d.graph_breaks or d.recompiles
        if not (pieces or read) and (blind := nothing_seen(self.run)):
            yield Result("no damage", "not_checked", "damage", why=blind)
            return
        yield Result(
            "no damage",
            "violated" if pieces else "passed",
            "Unreadable pieces of logs and traces",
            unit="count",
            sense="at most",
            wanted=0.0,
            found=float(pieces),
        )

    def _held(
        self, name: str, kind: Kind, wanted: float | None, way: str, baseline: float | None = None
    ) -> Result:
        """The figure and its limit; ``wanted`` None: the baseline does not have the figure."""
        found = kind.read(self.run)
        result = Result(
            name,
            "passed",
            kind.label,
            unit=kind.unit,
            sense="at most" if way == "max" else "at least",
            wanted=wanted,
            found=found.value,
            interval=found.interval,
            baseline=baseline,
            at_least=found.at_least,
        )
        if found.value is None:
            return replace(result, status="not_checked", why="not recorded")
        if wanted is None:
            why = "not recorded in the baseline" if self.baseline else "no baseline was given"
            return replace(result, status="not_checked", why=why)

        if not self.limits.whole_interval and self._is_too_noisy(kind.key, found, wanted):
            return replace(result, status="too_noisy", why=_TOO_NOISY)
        whole = found.interval if self.limits.whole_interval else None
        low, high = whole or (found.value, found.value)
        if low > wanted if way == "max" else high < wanted:
            return replace(result, status="violated", places=self._places(kind.key))
        if found.at_least and way == "max":
            why = "the report lists no more than these, so there may be more"
            return replace(result, status="not_checked", why=why)
        return result

    def _is_too_noisy(self, key: str, found: Measured, limit: float) -> bool:
        """Whether a time may as well be beyond ``limit`` as within, as the report says of it."""
        times = sorted(blocks(self.run, key)) if key in IN_BLOCKS else []
        spread = (times[len(times) // 10], times[-1 - len(times) // 10]) if times else None
        interval = found.interval or spread
        if interval is None or not interval[0] <= limit <= interval[1]:
            return False
        unsaid = key == "speedup" and is_noisy(self.run.diagnosis.verdict)
        return unsaid or interval[1] > VERY_NOISY * interval[0]

    def _number_of_findings(self, severity: str, many: float) -> Result:
        found = [
            finding
            for finding in everyone(self.run.diagnosis.findings)
            if severity in (ALL, finding.severity)
        ]
        places = [place for finding in found if (place := self.run.place_of(finding))]
        over = len(found) > many
        return Result(
            "max-findings" if severity == ALL else f"max-findings {severity}",
            "violated" if over else "passed",
            "findings" if severity == ALL else f"findings of severity {severity}",
            unit="count",
            sense="at most",
            wanted=many,
            found=float(len(found)),
            places=tuple(places[:MOST_PLACES]) if over else (),
        )

    def _none_of(self, name: str, severities: tuple[str, ...]) -> Iterator[Result]:
        broken = [
            Result(
                name,
                "violated",
                finding.title,
                code=finding.code,
                rule=finding.rule,
                severity=finding.severity,
                what_to_do=finding.what_to_do,
                places=(place,) if (place := self.run.place_of(finding)) else (),
            )
            for finding in everyone(self.run.diagnosis.findings)
            if finding.severity in severities
        ]
        yield from broken or [Result(name, "passed", f"no {' or '.join(severities)}")]

    def _no_new(self) -> Iterator[Result]:
        name = "no new-findings"
        if self.comparison is None or self.baseline is None:
            yield Result(name, "not_checked", "new findings", why="no baseline was given")
            return
        new = [
            pair
            for pair in self.comparison.causes
            if pair.before_severity is None and pair.after_severity in _WORSE["warnings"]
        ]
        if not new:
            yield Result(name, "passed", "no error or warning that the baseline does not have")
        for pair in new:
            blind = unseen(self.baseline, pair.rule)
            yield Result(
                name,
                "not_checked" if blind else "violated",
                pair.title,
                code=pair.code,
                rule=pair.rule,
                severity=pair.after_severity,
                what_to_do=pair.what_to_do,
                places=(pair.after,) if pair.after else (),
                why=f"in the baseline: {blind}" if blind else None,
            )

    def _no_slowdowns(self) -> Iterator[Result]:
        name = "no slowdowns"
        if self.comparison is None or self.baseline is None:
            yield Result(name, "not_checked", "slowdowns", why="no baseline was given")
            return
        machines = Sides(self.baseline, self.run).other_machine
        eager_too = self.comparison.outcome == "other_conditions"
        timed = [
            pair
            for pair in self.comparison.figures
            if pair.key in ("compiled_ms", "compile_seconds") and pair.change != "not_recorded"
        ]
        if not timed:
            why = "neither the step nor compiling was timed in both runs"
            yield Result(name, "not_checked", "slowdowns", why=why)
        for pair in timed:
            if pair.key == "compiled_ms" and eager_too:
                why = "the eager step changed as well, so the machine or the work differs"
                yield Result(name, "not_checked", pair.label, why=why)
            elif pair.key == "compile_seconds" and machines:
                yield Result(name, "not_checked", pair.label, why=machines)
            elif pair.key == "compiled_ms" and pair.ratio_interval is None:
                yield Result(name, "not_checked", pair.label, why=pair.basis)
            else:
                low, high = pair.ratio_interval or (1.0, pair.ratio or 1.0)
                noisy = pair.change == "within_noise" and high > VERY_NOISY * low
                status: Status = "violated" if pair.change == "worse" else "passed"
                yield Result(
                    name,
                    "too_noisy" if noisy else status,
                    pair.label,
                    unit=pair.unit,
                    sense="at most",
                    wanted=pair.before,
                    found=pair.after,
                    baseline=pair.before,
                    why=_TOO_NOISY if noisy else pair.basis,
                )

    def _places(self, key: str) -> tuple[Place, ...]:
        """Where a reader should look for a figure that is beyond its limit."""
        d = self.run.diagnosis
        spots: list[tuple[str | None, int | None, str | None]] = []
        if key == "graph_breaks":
            sites = d.job.breaks if d.job else d.graph_breaks
            spots = [(site.file, site.line, site.function) for site in sites]
        elif key in ("recompiles", "recompile_limits"):
            every = d.job.recompiles if d.job else d.recompiles
            chains = [one for one in every if one.limit_hit or key == "recompiles"]
            spots = [(chain.file, chain.line, chain.name) for chain in chains]
        return tuple(filter(None, (self.run.place(*spot) for spot in spots)))[:MOST_PLACES]
