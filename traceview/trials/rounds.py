"""Trying remedies, process after process, until all have a verdict or the budget is spent.

A script may end before every remedy had its turn: those that are left are asked for again, as long
as the last process ended at least one, or measured some pairs of blocks: pairs of several processes
add up. Those that are accepted are then tried together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from traceview.trials.judging import (
    TOO_NOISY,
    accepted,
    advised,
    by_a_hair,
    everywhere,
    judged,
    judged_apart,
    judged_failed,
    recommended,
)
from traceview.trials.model import Baseline, NotTried, Recommended, Trial
from traceview.trials.reading import (
    Apart,
    Measured,
    read_apart,
    read_died,
    read_trials,
    together,
)
from traceview.trials.remedies import JOINT, Remedy
from traceview.words import numbers as fmt

#: Less time is not worth the start of a process.
LEAST_S = 5.0
LEAST_BLOCKS_S, MOST_BLOCKS_S = 1.0, 5.0
#: The least for a combination of the script's arguments, and for each of its trials on top, while
#: there is budget left.
LEAST_SHARE_S, LEAST_TRIAL_S = 30.0, 20.0
#: Pairs of blocks that are enough where the script ends before a trial does.
ENOUGH_PAIRS = 5
#: Processes of each kind where a remedy can't be switched while the script runs.
TURNS = 3
#: … and where three do not settle whether it gains: by so little that chance may be behind it (one
#: of 20 remedies without effect), or by so much that one slow process may hide it.
MORE_TURNS, LITTLE = 5, 1.05
#: Part of the time that is left for trials in one process, where some may need their own.
_INSIDE = 0.6
#: How a trial ends that may do better where all of the process runs with it.
_REFUSED = ("not_applicable", "failed")
_ENDED = "the script ended before enough blocks of it were measured"
_UNLIKE = "what is called in a step differs with it, and no loop of the script is the same"
#: Settings of which only one can be in force.
_ONE_OF = {"inference_mode": "no_grad", "guards": "options.guard_filter_fn"}


class Process(msgspec.Struct, frozen=True):
    """A process that tried remedies has ended: its raw folder, and how (`traceview.run.Ending`).

    ``failure``: in words, where a signal or an exit code other than zero ended it.
    """

    raw: Path
    ending: str = "exit"
    failure: str | None = None


#: Runs the target again with these remedies, which have the same arguments; a limit in seconds.
Ask = Callable[[Sequence[Remedy], float], Process]
#: Runs it with one remedy all the way, or as it is (None); with its results checked at the end, or
#: all in eager.
AskApart = Callable[[Remedy | None, float, Literal["timed", "checked", "eager"]], Process]


class Plan(msgspec.Struct, frozen=True):
    """What is to be tried, and ``spare``: what is known to have no remedy, with the reason.

    ``compiles``: whether the script compiles anything, so that its calls can be switched;
    ``fails``: whether it ends with an error. ``on_gpu``: whether the script's steps run on one;
    ``launch_bound``: whether they wait for launches. None: not known. ``known``: trials that are
    not carried out again.
    """

    remedies: tuple[Remedy, ...]
    baseline: Baseline
    budget_s: float
    spare: tuple[NotTried, ...] = ()
    together: bool = True
    compiles: bool = True
    fails: bool = False
    on_gpu: bool | None = None
    launch_bound: bool | None = None
    known: tuple[Trial, ...] = ()


class Tried(msgspec.Struct, frozen=True):
    """What came of a plan."""

    trials: tuple[Trial, ...]
    recommended: Recommended | None
    not_tried: tuple[NotTried, ...]
    notes: tuple[str, ...] = ()


def block_seconds(left: float, trials: int) -> float:
    """Seconds in the blocks of each of several trials: compiling takes about two thirds."""
    return max(LEAST_BLOCKS_S, min(MOST_BLOCKS_S, left / 3 / max(1, trials)))


def results(
    plan: Plan, ask: Ask, apart: AskApart, clock: Callable[[], float] = time.monotonic
) -> Tried:
    """Try all remedies of ``plan``, and those that are accepted together."""
    rounds = _Rounds(plan, ask, apart, clock)
    done = {_key(trial): trial for trial in plan.known}
    new = [remedy for remedy in plan.remedies if _key(remedy) not in done]
    rounds.run_each(new)
    if plan.baseline == "compiled":
        rounds.confirm(new)
    rounds.run_apart()
    rounds.trials[:0] = [done[_key(each)] for each in plan.remedies if _key(each) in done]
    whole = None
    good = accepted(rounds.trials)
    if plan.together and not rounds.interrupted and (joint := _joined(good)):
        before = len(rounds.trials)
        rounds.run([joint], apart=False)
        whole = next(iter(rounds.trials[before:]), None)
    not_tried = (*rounds.not_tried, *plan.spare)
    if any(remedy.arguments for remedy in plan.remedies):
        best, notes = everywhere(rounds.trials)
        return Tried(tuple(rounds.trials), best, not_tried, notes)
    best = recommended(good, whole)
    if best is not None and plan.baseline == "eager":
        evidence = advised(good, best, rounds.sizes, plan.launch_bound)
        best = replace(best, why="; ".join(filter(None, (best.why, *evidence))))
    return Tried(tuple(rounds.trials), best, not_tried)


def _key(one: Remedy | Trial) -> tuple[object, ...]:
    return one.name, one.settings, one.patch, one.arguments


class _Rounds:
    """Processes, one after the other."""

    def __init__(self, plan: Plan, ask: Ask, apart: AskApart, clock: Callable[[], float]) -> None:
        self._plan, self._ask, self._ask_apart, self._clock = plan, ask, apart, clock
        self._deadline = clock() + plan.budget_s
        self.trials: list[Trial] = []
        self.not_tried: list[NotTried] = []
        self.interrupted = False
        self.sizes: int | None = None
        self._outside: list[Remedy] = []
        self._usual: dict[str, list[Apart]] = {"timed": [], "checked": [], "eager": []}

    @property
    def _left(self) -> float:
        return self._deadline - self._clock()

    @property
    def _spent(self) -> str:
        return f"the budget of {fmt.seconds(self._plan.budget_s)} was spent"

    def run_each(self, remedies: Sequence[Remedy]) -> None:
        """Those with the same arguments of the script together; each has its part of the budget."""
        groups = [list(own) for _, own in groupby(remedies, lambda remedy: remedy.arguments)]
        for number, group in enumerate(groups):
            if self.interrupted:
                self.not_tried += [remedy.untried("interrupted") for remedy in group]
                continue
            part = self._left / (len(groups) - number)
            least = LEAST_SHARE_S + LEAST_TRIAL_S * len(group)
            self.run(group, max(part, least) if len(groups) > 1 else None)

    def run(
        self, remedies: Sequence[Remedy], share_s: float | None = None, *, apart: bool = True
    ) -> None:
        """Ask for ``remedies`` until each has a verdict or no further process can help.

        ``apart``: what can't be switched waits for `run_apart`.
        """
        at_once = [each for each in remedies if self._waits(each)]
        self._outside += at_once
        pending = [remedy for remedy in remedies if remedy not in at_once]
        why: dict[str, str] = {}
        parts: dict[str, list[Measured]] = {}
        until = self._deadline if share_s is None else min(self._deadline, self._clock() + share_s)
        while pending:
            left = until - self._clock()
            if left < LEAST_S:
                why = {remedy.name: self._spent for remedy in pending}
                break
            if any(remedy.outside for remedy in pending):
                left *= _INSIDE  # the rest is for those that can't be switched in one process
            process = self._ask(pending, left)
            found = read_trials(process.raw, self._plan.baseline)
            waiting, more = [], False
            for remedy in pending:
                measured = found.get(remedy.name)
                if measured is None or measured.ended.state == "unfinished":
                    own = parts.setdefault(remedy.name, [])
                    if measured is not None and measured.figures and process.failure is None:
                        own.append(measured)
                        more = True
                    if not self._enough(remedy, own, ENOUGH_PAIRS):
                        waiting.append(remedy)
                        why[remedy.name] = (measured and measured.ended.why) or _ENDED
                elif apart and remedy.outside and measured.ended.state in _REFUSED:
                    self._outside.append(remedy)
                elif trial := self._judged(remedy, measured):
                    self.trials.append(trial)
                else:
                    usable = f"{fmt.plural(measured.pairs, 'pair')} of blocks can be used"
                    self.not_tried.append(remedy.untried(f"only {usable}: too few for a verdict"))
            stuck = len(waiting) == len(pending) and not more
            pending = self._without_failed(waiting, process, stuck=stuck)
            stuck = stuck and len(pending) == len(waiting)
            if process.ending in ("interrupted", "timeout"):
                self.interrupted = process.ending == "interrupted"
                said = "interrupted" if self.interrupted else self._spent
                why = {remedy.name: said for remedy in pending}
                break
            if stuck:
                break
        pending = [each for each in pending if not self._enough(each, parts.get(each.name, []), 1)]
        alone = [remedy for remedy in pending if apart and remedy.outside and not self.interrupted]
        self._outside += alone
        self.not_tried += [
            remedy.untried(why[remedy.name]) for remedy in pending if remedy not in alone
        ]

    def _waits(self, remedy: Remedy) -> bool:
        """Whether it is tried in processes of its own from the start.

        What is wrong may be so only of what was compiled before it was switched on.
        """
        if remedy.fixes and not remedy.afresh:
            return self._plan.baseline == "compiled"
        return remedy.outside and (remedy.alone or not self._plan.compiles)

    def _enough(self, remedy: Remedy, parts: Sequence[Measured], pairs: int) -> bool:
        """Whether the processes that ended too early make a trial; it is then among the others."""
        if sum(len(part.figures) for part in parts) < pairs:
            return False
        trial = self._judged(remedy, together(parts))
        self.trials += [trial] if trial else []
        return trial is not None

    def _judged(self, remedy: Remedy, measured: Measured) -> Trial | None:
        self.sizes = max(filter(None, (self.sizes, measured.sizes)), default=None)
        known = {"device": True, "host": False}.get(measured.clock or "", self._plan.on_gpu)
        return judged(remedy, measured, self._plan.baseline, known)

    def _without_failed(
        self, waiting: list[Remedy], process: Process, *, stuck: bool
    ) -> list[Remedy]:
        """Those of ``waiting`` that can be asked for again; the others' trials have failed.

        What a crash ended was under way; where none could begin, all of them fail as the script.
        """
        if process.ending in ("interrupted", "timeout"):
            return waiting
        died = read_died(process.raw)
        why = died.error or process.failure
        if why is None or not (died.during or stuck):
            return waiting
        failed = [each for each in waiting if died.during in (None, each.name)]
        self.trials += [judged_failed(each, why) for each in failed]
        return [each for each in waiting if each not in failed]

    def confirm(self, remedies: Iterable[Remedy]) -> None:
        """Measure again, in another process, what was accepted by a hair: that result counts.

        Of many remedies that gain nothing, some are above 1 by chance.
        """
        first = {trial.name: trial for trial in self.trials if by_a_hair(trial)}
        if not first or self.interrupted:
            return
        self.trials = [trial for trial in self.trials if trial.name not in first]
        self.run([remedy for remedy in remedies if remedy.name in first])
        self.not_tried = [row for row in self.not_tried if row.name not in first]
        again = {trial.name for trial in self.trials}
        self.trials += [
            replace(trial, verdict="no_gain", why=TOO_NOISY)
            for name, trial in first.items()
            if name not in again
        ]

    def run_apart(self) -> None:
        """What can't be switched in a process that runs: in turns with the script as it is.

        What leaves a callable in eager comes last, and not where something else fixes the same.
        """
        for remedy in sorted(self._outside, key=_leaves_out):
            others = [trial for trial in self.trials if trial.fixes]
            if _leaves_out(remedy) and any({*each.rules} & {*remedy.rules} for each in others):
                self.not_tried.append(remedy.untried(f"{others[0].name} fixes it"))
                continue
            trial, changed = self._alone(remedy)
            if trial:
                self.trials.append(trial)
            elif self.interrupted or self._left < LEAST_S:
                why = "interrupted" if self.interrupted else self._spent
                self.not_tried.append(remedy.untried(why))
            else:
                usual = self._usual["timed"]
                known = usual and changed and all(each.timed for each in (*usual, *changed))
                # A change that makes it much faster may leave too little to time its loops.
                short = any(each.loops for each in usual) and not all(c.loops for c in changed)
                self.not_tried.append(remedy.untried(_UNLIKE if known and not short else _ENDED))

    def _alone(self, remedy: Remedy) -> tuple[Trial | None, list[Apart]]:
        """Its trial, None where there is no verdict, and what its own processes measured."""
        fixes, changed = remedy.fixes is not None, list[Apart]()
        usual = self._usual["checked" if fixes else "timed"]
        if fixes and not usual:
            self._once(None, usual, "checked")
        as_it_is = usual[0] if fixes and usual else None
        if self._plan.fails:
            usual = self._usual["eager"]
        for turn in range(MORE_TURNS):
            trial = judged_apart(remedy, usual, changed, as_it_is)
            if fixes and trial:
                break
            if turn >= TURNS and not (trial and trial.is_open(LITTLE)):
                break
            if len(usual) <= turn and not self._once(
                None, usual, "eager" if self._plan.fails else "checked" if fixes else "timed"
            ):
                break
            if not self._once(remedy, changed, "checked" if fixes else "timed"):
                break
        return judged_apart(remedy, usual, changed, as_it_is, enough=1), changed

    def _once(
        self,
        remedy: Remedy | None,
        found: list[Apart],
        how: Literal["timed", "checked", "eager"],
    ) -> bool:
        """Add one process's figures to ``found``; whether another one can follow."""
        if self.interrupted or self._left < LEAST_S:
            return False
        process = self._ask_apart(remedy, self._left, how)
        self.interrupted = process.ending == "interrupted"
        apart = read_apart(process.raw, with_results=how == "checked")
        found.append(apart)
        return apart.timed


def _leaves_out(remedy: Remedy) -> bool:
    only = all(each.startswith("eager=") for each in remedy.settings)
    return remedy.fixes is not None and bool(remedy.settings) and only


def _joined(good: Sequence[Trial]) -> Remedy | None:
    """All settings and one patch of ``good``, the fastest first; None where there is one only.

    Where two set the same thing, the faster one's value stays.
    """
    settings: dict[str, str] = {}
    parts: list[Trial] = []
    patch: str | None = None
    for trial in good:
        if trial.apart or good[0].fixes != trial.fixes:
            continue
        names = {setting: setting.partition("=")[0] for setting in trial.settings}
        keys = {  # what each sets
            setting if name == "eager" else _ONE_OF.get(name, name): setting
            for setting, name in names.items()
        }
        if keys.keys() & settings.keys() or (patch and trial.patch):
            continue
        settings |= keys
        patch = patch or trial.patch
        parts.append(trial)
    if len(parts) < 2:
        return None
    predicted = [trial.predicted_ms for trial in parts if trial.predicted_ms is not None]
    return Remedy(
        JOINT.join(trial.name for trial in parts),
        tuple(settings.values()),
        patch,
        tuple(dict.fromkeys(rule for trial in parts for rule in trial.rules)),
        sum(predicted) if predicted else None,
        costs=tuple(price for trial in parts if trial.patch for price in trial.price),
    )
