"""The checklist: what each line asks, and the facts of this run that answer it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.rollout.model import Check, Coverage, Link, Name, Process, ProcessName
from traceview.rollout.reading import Called, Recorded
from traceview.rules.mem_peak_up import MOST_BYTES, MOST_RATIO
from traceview.words import numbers as fmt
from traceview.words.text import one_line

#: With fewer calls after the warm-up, that none of them compiled says nothing.
FEWEST_CALLS = 20
#: On a CPU the compiler's own modules stay in the process: some 0.1 to 0.6 GiB.
MOST_HOST_BYTES = 1 << 30
_CHECKED: dict[Name, tuple[str, ...]] = {
    "outputs": ("acc-backend-bug", "acc-low-precision", "acc-rng"),
    "recompiles": ("rc-limit-hit", "sv-cold-requests", "rc-dynamic-false", "rc-dim-specialized"),
    "caches": ("ct-cache-miss-warm", "ct-cache-bypass", "ct-cache-disabled"),
    "memory": ("mem-peak-up",),
    "fallback": ("cap-suppressed-failure", "cap-compile-crash", "rc-limit-hit"),
    "shapes": ("rc-auto-dynamic", "rc-zero-one", "rc-last-batch"),
}
_HIT = re.compile(r"config\.(\w+) \((\d+)\) function: '(\w+)' \((.{1,200}?:\d+)\)")
_SURVIVED = ("cap-suppressed-failure", "cap-compile-crash")
#: Stances in which nothing is compiled any more, and what does not fit runs in eager.
_SETTLED = ("eager_on_recompile", "force_eager")
_SAME = {"agree": "", "random": " but for random numbers", "rounding": " but for rounding"}

Answer = tuple[bool | None, str]


class Facts(msgspec.Struct, frozen=True):
    """What the checks read. ``own_cache``: the user's environment names a folder for caches."""

    diagnosis: Diagnosis
    recorded: Mapping[ProcessName, Recorded]
    warmup: int | None = None
    memory_limit: int | None = None
    own_cache: bool = False
    coverage: Coverage | None = None

    def called(self, name: ProcessName) -> tuple[Called, ...]:
        """The callables that one process recorded calls of."""
        found = self.recorded.get(name)
        return found.called if found is not None else ()

    def end(self, name: ProcessName) -> Process | None:
        """A process that recorded its end."""
        found = self.recorded.get(name)
        return found.process if found is not None and found.process.why is not None else None

    def outputs(self) -> Answer:
        """One call of every callable that served was repeated on copies, and no output differs."""
        compared = {each.region_id: each for each in self.diagnosis.outputs}
        wrong = [each for each in compared.values() if each.outcome == "differ"]
        if wrong:
            one = wrong[0]
            bad = next(
                (row for row in one.checks if row.same is False and row.run != "eager_again"), None
            )
            by = (
                f", by up to {bad.max_abs_diff:.2g}" if bad and bad.max_abs_diff is not None else ""
            )
            output = (bad.output if bad else None) or "an output"
            return False, f"{output} of {one.name} differs from eager's{by}"
        end = self.end("cold")
        limited = any(each.rule == "rc-limit-hit" for each in everyone(self.diagnosis.findings))
        if end is not None and (limited or end.limit_hits or end.graphs == 0):
            fact = "the recompile limit was hit" if end.graphs else "nothing was compiled"
            return None, f"{fact}, so what was compared may have run in eager"
        called = {each.region_id: each.name for each in self.called("cold")}
        missing = [
            f"{name}{f': {why}' if (why := getattr(compared.get(number), 'why', None)) else ''}"
            for number, name in called.items()
            if getattr(compared.get(number), "outcome", None) not in _SAME
        ]
        if missing or not called:
            what = "; ".join(missing) or "no call was recorded"
            return None, f"outputs were not compared ({what})"
        remarks = {_SAME[compared[number].outcome] for number in called} - {""}
        agree = f"compiled and eager agree{''.join(sorted(remarks))}"
        return True, f"{agree}: one call of {fmt.plural(len(called), 'callable')} was compared"

    def recompiles(self) -> Answer:
        """No call after the warm-up compiled in the cold process; no recompile limit was hit."""
        served = [each.served("cold", self.warmup) for each in self.called("cold")]
        late, later = sum(s.late_calls for s in served), sum(s.after_warmup.calls for s in served)
        end = self.end("cold")
        if end is not None and end.limit_hits:
            return False, f"{_limit(end.limit_hits[0])}: other sizes run in eager"
        if late:
            longest = max(s.longest_late_ms or 0.0 for s in served)
            said = f"{late:,} of {later:,} calls after the warm-up waited for a compile"
            return False, f"{said}, the longest took {fmt.milliseconds(longest)}"
        if end is None or end.limit_hits is None or later < FEWEST_CALLS:
            return (
                None,
                f"{fmt.plural(later, 'call')} after the warm-up, of {FEWEST_CALLS} that it takes",
            )
        return True, f"none in {later:,} calls after the warm-up"

    def caches(self) -> Answer:
        """The second process found each graph in the caches of the first."""
        end = self.end("warm")
        if end is None or not end.counters:
            return None, "no second process reached its end"
        if not end.graphs:
            return None, "the second process compiled nothing"
        counted = Counter(
            {name.replace("fxgraph_cache_", ""): number for name, number in end.counters.items()}
        )
        again, hits = counted["miss"] + counted["bypass"], counted["hit"]
        if again:
            return False, f"a second process compiled {again} of {again + hits} graphs again"
        if not hits and not counted["autograd_cache_hit"]:
            return False, "torch's caches were not used: a second process compiled everything again"
        where = (
            ""
            if self.own_cache
            else (
                "; keep TORCHINDUCTOR_CACHE_DIR on a disk that outlives the process, it is not set"
                " here"
            )
        )
        return True, f"a second process found every graph in the caches of the first{where}"

    def memory(self) -> Answer:
        """The compiled process's peak against the limit that was given, else against eager's."""
        ends = [end for name in ("cold", "warm") if (end := self.end(name)) and end.peak_bytes]
        eager = self.end("eager")
        compiled = max((end.peak_bytes or 0 for end in ends), default=0)
        if not compiled:
            return None, "no peak was recorded"
        peak = f"peak of {fmt.size(compiled)} compiled"
        if self.memory_limit is not None:
            limit = fmt.size(self.memory_limit)
            return compiled <= self.memory_limit, f"{peak}, of {limit} that there are"
        if eager is None or not eager.peak_bytes:
            return None, f"{peak}; eager's was not recorded"
        host = ends[0].device == "cpu"
        spare = MOST_HOST_BYTES if host else MOST_BYTES
        more = compiled - eager.peak_bytes
        fits = compiled <= MOST_RATIO * eager.peak_bytes or more <= spare
        what = "whole process" if host else "allocator"
        return fits, f"{peak}, {fmt.size(eager.peak_bytes)} eager ({what})"

    def fallback(self) -> Answer:
        """A compile that fails, or one too many, sends the call to eager instead of raising."""
        end = self.end("cold")
        if end is None or not end.settings or end.stance is None or end.limit_hits is None:
            return None, "the settings at the end of serving, or hits of a limit, were not recorded"
        names = [each.name for each in self.called("cold") if each.fullgraph]
        raising = [
            f"{name} is set"
            for name in ("error_on_recompile", "fail_on_recompile_limit_hit")
            if end.settings.get(name)
        ]
        raising += ["the stance is fail_on_recompile"] if end.stance == "fail_on_recompile" else []
        if raising:
            return False, f"a recompile raises in a request: {', '.join(raising)}"
        if end.limit_hits:
            return False, f"{_limit(end.limit_hits[0])}: its calls run in eager for good"
        if end.stance in _SETTLED:
            return (
                True,
                f"the stance is {end.stance}: what does not fit runs in eager, nothing compiles",
            )
        if not end.settings.get("suppress_errors"):
            return False, (
                "a compiler error reaches the request: neither suppress_errors nor the stance "
                "eager_on_recompile is set"
            )
        if names:
            return (
                False,
                f"fullgraph=True of {', '.join(names[:3])} raises in spite of suppress_errors",
            )
        return True, "suppress_errors is set: where a compile fails, the call runs in eager"

    def shapes(self) -> Answer:
        """All traffic of the file of shapes meets code that this run has compiled."""
        coverage = self.coverage
        if coverage is None:
            return None, "no file of shapes was given (--shapes FILE)"
        share = coverage.seen + coverage.dynamic
        seen = fmt.percent(coverage.seen)
        said = f"{seen} of the calls in the file have sizes that were served here"
        if coverage.dynamic:
            said += f", {fmt.percent(coverage.dynamic)} lie in the range of a dynamic graph"
        return not coverage.missing and share > 0, said


def checklist(facts: Facts) -> tuple[Check, ...]:
    """Every check, in the order of the list."""
    answers: dict[Name, Answer] = {
        "outputs": facts.outputs(),
        "recompiles": facts.recompiles(),
        "caches": facts.caches(),
        "memory": facts.memory(),
        "fallback": facts.fallback(),
        "shapes": facts.shapes(),
    }
    found = {each.rule: each for each in everyone(facts.diagnosis.findings)}

    def links(name: Name, passed: bool | None) -> tuple[Link, ...]:
        """A check that passed has none but failures that were survived."""
        rules = (
            rule for rule in _CHECKED[name] if rule in found and (not passed or rule in _SURVIVED)
        )
        return tuple(
            Link(code=found[rule].code, rule=rule, title=found[rule].title) for rule in rules
        )

    return tuple(
        Check(
            name=name,
            passed=passed,
            detail=detail,
            rules=_CHECKED[name],
            findings=links(name, passed),
        )
        for name, (passed, detail) in answers.items()
    )


def verdict(checks: Sequence[Check]) -> str:
    """One sentence: what failed, what is not known."""
    failed = [each.name for each in checks if each.passed is False]
    unknown = [each.name for each in checks if each.passed is None]
    rest = f"; not recorded: {', '.join(unknown)}" if unknown else ""
    if failed:
        return f"Not ready: {', '.join(failed)} failed{rest}"
    if unknown:
        passed = len(checks) - len(unknown)
        return f"Nothing failed: {passed} of {fmt.plural(len(checks), 'check')} passed{rest}"
    return f"Ready: all {len(checks)} checks passed"


def _limit(warning: str) -> str:
    """torch's warning in a few words."""
    found = _HIT.search(warning)
    if found is None:
        return f"a recompile limit was hit ({one_line(warning, 120)})"
    limit, number, function, place = found.groups()
    return f"{function}() at {place.rpartition('/')[2]} hit torch._dynamo.config.{limit} ({number})"
