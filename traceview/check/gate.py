"""A run beside its limits. What can't be checked does not pass unless the user says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from traceview.check.limits import ALL, NAMED, Limits
from traceview.check.model import Checked, Result
from traceview.compare import Side, compare
from traceview.compare.causes import lines
from traceview.compare.figures import Kind, Measured, kinds, logged
from traceview.compare.model import CausePair, Comparison, FigurePair, Place
from traceview.diagnosis.order import SEVERITIES
from traceview.rules.finding import Finding

MOST_PLACES = 10
_WORSE = {"errors": ("error",), "warnings": ("error", "warning"), "findings": SEVERITIES}
_OWN_NAMES = {key: name for name, (key, _) in NAMED.items()}


def check(run: Side, limits: Limits, baseline: Side | None = None) -> Checked:
    """Every limit, held against the run; violated ones first."""
    comparison = compare(baseline, run) if baseline else None
    gate = _Gate(run, limits, baseline, comparison)
    results = [gate.judged(result) for result in gate.results()]
    order = {"violated": 0, "not_checked": 1, "passed": 2}
    results.sort(key=lambda result: order[result.status])
    cwd = run.diagnosis.environment.get("cwd")
    return Checked(
        passed=not any(result.status == "violated" for result in results),
        run=run.subject(),
        baseline=baseline.subject() if baseline else None,
        results=tuple(results),
        cwd=cwd if isinstance(cwd, str) else None,
        script=_script(run),
    )


class _Gate(msgspec.Struct, frozen=True):
    run: Side
    limits: Limits
    baseline: Side | None
    comparison: Comparison | None

    def judged(self, result: Result) -> Result:
        """What could not be checked is a violation, unless ``missing`` is skip; then identity."""
        if result.status == "not_checked" and self.limits.missing == "fail":
            result = replace(result, status="violated")
        return replace(result, fingerprint=_fingerprint(self.run, result))

    def results(self) -> Iterator[Result]:
        verdict = self.run.diagnosis.verdict
        if verdict.outcome == "failed" and not self.limits.allow_failure:
            why = verdict.sentence
            yield Result("script", "violated", "The script failed", why=why, severity="error")
        by_key = {kind.key: kind for kind in kinds()}
        for key, most in self.limits.highest.items():
            yield self._figure(by_key[key], most, "max")
        for key, least in self.limits.lowest.items():
            yield self._figure(by_key[key], least, "min")
        for key, part in self.limits.growth.items():
            yield self._growth(by_key[key], part)
        for severity, many in self.limits.findings.items():
            yield self._seen(self._number_of_findings(severity, many))
        for word in self.limits.no:
            yield from map(self._seen, self._none(word))

    def _none(self, word: str) -> Iterator[Result]:
        if word == "new-findings":
            return self._no_new()
        if word == "slowdowns":
            return self._no_slowdowns()
        if word == "damage":
            return self._no_damage()
        return self._none_of(f"no {word}", _WORSE[word])

    def _seen(self, result: Result) -> Result:
        """``result``, unless it passes only because there was nothing to find anything in."""
        blind = not logged(self.run) and self.run.diagnosis.verdict.outcome == "not_measured"
        if result.status != "passed" or not blind:
            return result
        why = "no log was read and no step was timed"
        return replace(result, status="not_checked", why=why, unit=None)

    def _no_damage(self) -> Iterator[Result]:
        pieces = self.run.diagnosis.reading.unreadable
        yield Result(
            "no damage", "violated" if pieces else "passed", "Pieces that could not be read",
            unit="count", sense="at most", wanted=0.0, found=float(pieces),
        )  # fmt: skip

    def _figure(self, kind: Kind, wanted: float, way: str) -> Result:
        found = kind.read(self.run)
        name = _OWN_NAMES.get(kind.key, f"{way} {kind.key}")
        result = _of_figure(name, kind, found, wanted, way)
        if found.value is None:
            return replace(result, status="not_checked", why="not recorded")
        if not _broken(found, wanted, way, self.limits.whole_interval):
            if found.at_least and way == "max":
                why = "the report had no room for more than these"
                return replace(result, status="not_checked", why=why)
            return result
        return replace(result, status="violated", places=self._places(kind.key))

    def _growth(self, kind: Kind, part: float) -> Result:
        found = kind.read(self.run)
        old = kind.read(self.baseline).value if self.baseline else None
        wanted = None if old is None else old * (1 + part)
        name = f"max-growth {kind.key}"
        result = replace(_of_figure(name, kind, found, wanted, "max"), baseline=old)
        if found.value is None or wanted is None:
            where = "" if found.value is None else " in the baseline"
            why = f"not recorded{where}" if self.baseline else "no baseline was named"
            return replace(result, status="not_checked", why=why)
        if not _broken(found, wanted, "max", self.limits.whole_interval):
            return result
        return replace(result, status="violated", places=self._places(kind.key))

    def _number_of_findings(self, severity: str, many: float) -> Result:
        found = [
            finding
            for finding, _ in lines(self.run.diagnosis.findings)
            if severity in (ALL, finding.severity)
        ]
        what = "findings" if severity == ALL else f"findings of severity {severity}"
        name = "max-findings" if severity == ALL else f"max-findings {severity}"
        places = [self._place(finding) for finding in found]
        over = len(found) > many
        return Result(
            name, "violated" if over else "passed", what, unit="count", sense="at most",
            wanted=many, found=float(len(found)),
            places=tuple(place for place in places if place)[:MOST_PLACES] if over else (),
        )  # fmt: skip

    def _none_of(self, name: str, severities: tuple[str, ...]) -> Iterator[Result]:
        broken = [
            self._of_finding(name, finding)
            for finding, _ in lines(self.run.diagnosis.findings)
            if finding.severity in severities
        ]
        yield from broken or [Result(name, "passed", f"no {' or '.join(severities)}")]

    def _of_finding(self, name: str, finding: Finding) -> Result:
        place = self._place(finding)
        return Result(
            name, "violated", finding.title, code=finding.code, rule=finding.rule,
            severity=finding.severity, what_to_do=finding.what_to_do,
            places=(place,) if place else (),
        )  # fmt: skip

    def _no_new(self) -> Iterator[Result]:
        name = "no new-findings"
        if self.comparison is None:
            yield Result(name, "not_checked", "new findings", why="no baseline was named")
            return
        new = [
            _of_pair(name, pair)
            for pair in self.comparison.causes
            if pair.before_severity is None and pair.after_severity in _WORSE["warnings"]
        ]
        yield from new or [Result(name, "passed", "no error or warning that the baseline has not")]

    def _no_slowdowns(self) -> Iterator[Result]:
        name = "no slowdowns"
        if self.comparison is None:
            yield Result(name, "not_checked", "slowdowns", why="no baseline was named")
            return
        eager_too = self.comparison.outcome == "other_conditions"
        timed = [
            pair
            for pair in self.comparison.figures
            if pair.key in ("compiled_ms", "compile_seconds") and pair.change != "not_recorded"
        ]
        if not timed:
            why = "neither steps nor compiling were timed in both runs"
            yield Result(name, "not_checked", "slowdowns", why=why)
        for pair in timed:
            if pair.key == "compiled_ms" and eager_too:
                why = "the eager step changed as well: the machine or the work differs"
                yield Result(name, "not_checked", pair.label, why=why)
            else:
                yield self._slowdown(name, pair)

    def _slowdown(self, name: str, pair: FigurePair) -> Result:
        return Result(
            name, "violated" if pair.change == "worse" else "passed", pair.label, unit=pair.unit,
            sense="at most", wanted=pair.before, found=pair.after, baseline=pair.before,
            why=pair.basis,
        )  # fmt: skip

    def _place(self, finding: Finding) -> Place | None:
        at = finding.location
        return self.run.place(at.file, at.line, at.function) if at else None

    def _places(self, key: str) -> tuple[Place, ...]:
        """Where a reader should look for a figure that is beyond its limit."""
        d, place = self.run.diagnosis, self.run.place
        found: Callable[[], list[Place | None]] = {
            "graph_breaks": lambda: [place(s.file, s.line, s.function) for s in d.graph_breaks],
            "recompiles": lambda: [place(c.file, c.line, c.name) for c in d.recompiles],
            "recompile_limits": lambda: [
                place(c.file, c.line, c.name) for c in d.recompiles if c.limit_hit
            ],
        }.get(key, list)
        return tuple(spot for spot in found() if spot)[:MOST_PLACES]


def _of_figure(name: str, kind: Kind, found: Measured, wanted: float | None, way: str) -> Result:
    return Result(
        limit=name,
        status="passed",
        what=kind.label,
        unit=kind.unit,
        sense="at most" if way == "max" else "at least",
        wanted=wanted,
        found=found.value,
        interval=found.interval,
        at_least=found.at_least,
    )


def _of_pair(name: str, pair: CausePair) -> Result:
    """A finding that the baseline has not; where it could not have it, that is not checked."""
    unknown = pair.change == "unknown"
    return Result(
        name,
        "not_checked" if unknown else "violated",
        pair.title,
        code=pair.code,
        rule=pair.rule,
        severity=pair.after_severity,
        what_to_do=pair.what_to_do,
        places=(pair.after,) if pair.after else (),
        why=f"in the baseline {pair.why.removeprefix('before: ')}" if unknown else None,
    )


def _broken(found: Measured, wanted: float, way: str, whole_interval: bool) -> bool:
    """Whether the figure (or its whole interval) is beyond the limit."""
    assert found.value is not None  # the caller has looked
    low, high = found.interval if whole_interval and found.interval else (found.value,) * 2
    return low > wanted if way == "max" else high < wanted


def _fingerprint(run: Side, result: Result) -> str:
    place = result.places[0] if result.places else None
    text = run.text(place.path, place.line) if place else None
    line = text or (str(place.line) if place and place.line is not None else "")
    where = (place.file, place.function or "", line) if place else ("", "", "")
    return sha256("\0".join((result.limit, result.code or "", *where)).encode()).hexdigest()[:32]


def _script(run: Side) -> Place | None:
    """The script that ran, for what has no place of its own."""
    environment = run.diagnosis.environment
    argv, cwd = environment.get("argv"), environment.get("cwd")
    name = argv[0] if isinstance(argv, list) and argv else None
    if not isinstance(name, str) or not name.endswith(".py"):
        return None
    path = str(PurePosixPath(cwd, name)) if isinstance(cwd, str) else name
    return run.place(path, 1, None)
