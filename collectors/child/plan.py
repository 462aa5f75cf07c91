"""The measuring plan: phases, pairs of blocks and profiler windows. Pure: no clock, no torch.

A plan is a generator. It yields orders and is sent the `Moment` of the step edge that it is at;
only `Wait` lets steps pass, every other order is carried out at the same edge. So a whole run
reads from top to bottom:

    cold, warmup   until compiling has stopped
    block          a few small pairs of blocks, eager and compiled alternating
    profile        two windows per stance, for time and for the user's lines (or at the end, see
                   below)
    block          more and longer pairs, until the speedup is known to 3 %
    profile        the windows for time once more, longer, with an unpaired block before and after

How long the script lasts is not known. So a pair takes a fifth of the steps before it at most: what
a script's end cuts off is little, and by far the most steps lie in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from .pairs import FEWEST, Pair, counting, interval, longest_worthwhile

QUIET_STEPS_LIMIT, QUIET_SECONDS_LIMIT = 64, 60.0
QUIET_STEPS_LEAST = 10  # a slow first compile alone is no reason to give up
BUSY_STEPS = 24  # where half of them compile or record, this is what the script's steps do
STEPS_A_VARIANT, SECONDS_A_VARIANT = 8, 1.0  # that a higher recompile limit allows
FIXED_QUIET_STEPS, FIXED_BLOCK_STEPS, FIXED_WINDOW_STEPS = 20, 10, 20
BUDGET_MS = 20_000.0
LEAST_PAIRS, MOST_BUDGETS = 5, 3  # budgets: of a trial that compiled something in its pairs
DEFAULT_BLOCKS = 12  # where no interval decides: several ranks, one stance alone
NARROW = 1.03**2  # upper over lower end of an interval of the speedup that is exact to 3 %
NARROW_MS = 2000.0  # in blocks, at least: a machine may be slow for a second
MOST_PAIRS, MOST_SETTLING_STEPS = 200, 500
GROWTH = 2  # from block to block, where the user wants a number of full ones
GROWING_PAIRS = 12  # more than it takes to grow so, whatever the step
GROWTH_SHARE = 10  # a block takes this part of the steps before it; a pair, twice as much
LEAST_PER_SKIPPED = 2  # timed steps for each that is left out after the switch
LEAST_BLOCK_MS = 20.0  # reading the clocks at the edges is a thousandth of this, or less
SMALL_PAIRS = {"call": 3, "optimizer": 2}  # before the windows, and before blocks begin to grow
SHORT_STEP_MS = 5.0  # below it a step is launch-bound: more steps are left out
LONG_STEP_MS, LONG_WINDOW_MS = 50.0, 150.0
LONG_WINDOW_STEPS = (6, 60)  # at least, at most
LONGEST_MARKED_MS = 5000.0  # longer steps are not run once more for their lines

Stance = Literal["eager", "compiled", "trial"]
Phase = Literal["cold", "warmup", "block", "profile", "trial", "between", "tail"]
Purpose = Literal["time", "lines"]


@dataclass(frozen=True)
class Moment:
    """What is known at a step edge. ``step_ms``: latest estimate by stance, absent if unknown.

    ``pairs``: those measured so far, in the order of their numbers. ``most_steps``: that a
    profiler window of a stance may have, for its trace and its memory; absent if unknown.
    ``trial_over``: what is tried can't go on.
    """

    step: int
    seconds: float
    compiles: int
    step_ms: Mapping[str, float]
    step_kind: Literal["call", "optimizer"] = "call"
    device: bool = False
    profiler_stays: bool = False
    calm_steps: int = 3
    pairs: Sequence[Pair] = ()
    trial_over: bool = False
    most_steps: Mapping[str, float] = field(default_factory=dict)

    def estimate(self, stance: Stance) -> float:
        """A step's time in ms in ``stance``; another stance's, or 1 ms, while it is unknown."""
        known = self.step_ms.get(stance) or next(iter(self.step_ms.values()), 1.0)
        return max(known, 1e-3)

    def block_steps(self, stance: Stance) -> int:
        """Steps of a full block: some hundred short ones; more where much happens between calls."""
        calls_ms = 150.0 if self.device else 100.0
        block_ms = 300.0 if self.step_kind == "optimizer" else calls_ms
        return math.ceil(block_ms / self.estimate(stance))


@dataclass(frozen=True)
class Settings:
    """What the user and the parent chose. ``fixed``: several ranks, all follow step numbers.

    ``steps`` of every block, ``blocks`` (pairs of full length): None where measuring decides.
    ``profiled``: early. ``budget_ms``: in the blocks of one set of pairs. ``trial``: what they are
    about, if any; ``again``: compiled again after them, warm. ``variants``: a trial's own limit.
    """

    stances: tuple[Stance, ...] = ("eager", "compiled")
    steps: int | None = None
    blocks: int | None = None
    profile: bool = True
    profiled: bool = False
    fixed: bool = False
    budget_ms: float = BUDGET_MS
    trial: str | None = None
    again: bool = False
    variants: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Enter:
    """A phase begins."""

    phase: Phase
    detail: str | None = None


@dataclass(frozen=True)
class Take:
    """Run from here on in this stance."""

    stance: Stance


@dataclass(frozen=True)
class Wait:
    """Let ``steps`` steps pass; ``watch``: with a clock around every step and call."""

    steps: int
    watch: bool = False


@dataclass(frozen=True)
class Steady:
    """Compiling has gone quiet, or will not."""

    never_quiet: bool


@dataclass(frozen=True)
class OpenBlock:
    """The first edge of a timed block; ``pair`` None: it is next to a profiler window."""

    stance: Stance
    pair: int | None
    steps: int
    skipped: int


@dataclass(frozen=True)
class CloseBlock:
    """The last edge of the block."""


@dataclass(frozen=True)
class PrepareWindow:
    """Attach the profiler; it writes nothing before the window opens."""

    stance: Stance


@dataclass(frozen=True)
class OpenWindow:
    """Start the profiler here: for several steps as they are, or for one with its lines marked."""

    stance: Stance
    purpose: Purpose = "time"


@dataclass(frozen=True)
class CloseWindow:
    """Stop it and write the trace."""


@dataclass(frozen=True)
class BeginTrial:
    """The next steps in stance ``trial`` are with this remedy; ``again``: it only compiles."""

    name: str
    again: bool = False


@dataclass(frozen=True)
class EndTrial:
    """What is tried has been measured, or can't be."""


@dataclass(frozen=True)
class LeaveOut:
    """Record what is not done, and why."""

    what: str
    why: str


Window = PrepareWindow | OpenWindow | CloseWindow
Act = Enter | Take | Steady | OpenBlock | CloseBlock | Window | BeginTrial | EndTrial
Order = Act | LeaveOut | Wait
Steps = Generator[Order, Moment, Moment]
Calm = Generator[Order, Moment, bool]


def measuring_plan(settings: Settings, first_pair: int = 0) -> Steps:
    """The whole plan; returns when it is complete. Pairs are numbered from ``first_pair``."""
    quiet = yield from _quiet(settings)
    blocks = _Blocks(settings, first_pair, never_quiet=quiet)
    longer, profiled = not settings.profile, settings.profiled or not settings.profile
    moment = yield Enter("block", f"1/{blocks.wanted or FEWEST}")
    while not blocks.complete(moment):
        moment = yield from blocks.pair(moment)
        if not profiled and blocks.enough_to_profile(moment):
            profiled = True
            moment = yield from _windows(settings, moment)
            moment = yield blocks.phase(moment)
        elif profiled and not longer and blocks.enough_for_longer(moment):
            longer = True
            moment = yield from _longer_windows(settings, moment)
            moment = yield blocks.phase(moment)
    if not profiled:
        moment = yield from _windows(settings, moment, late=True)
    elif not longer:
        moment = yield from _longer_windows(settings, moment)
    return moment


def trials_plan(settings: Settings, names: Sequence[str], first_pair: int = 0) -> Steps:
    """One remedy after the other, each in pairs of blocks with the other of the two stances."""
    baseline = settings.stances[0]
    never_quiet = yield from _quiet(replace(settings, stances=("compiled",)))
    for number, name in enumerate(names, start=1):
        settings = replace(settings, trial=f"{number}/{len(names)} {name}")
        yield Enter("trial", settings.trial)
        yield Take(baseline)
        moment = yield BeginTrial(name)
        variants = settings.variants.get(name, 0)
        calm = moment.trial_over or (yield from _calm((yield Take("trial")), variants=variants))
        blocks = _Blocks(settings, first_pair, never_quiet=never_quiet or not calm)
        moment = yield blocks.phase(moment)
        while not (moment.trial_over or blocks.complete(moment)):
            moment = yield from blocks.pair(moment)
        first_pair += blocks.pairs
        moment = yield Take(baseline)
        if settings.again and not moment.trial_over:
            yield BeginTrial(name, again=True)
            yield from _calm((yield Take("trial")))
            yield Take(baseline)
        moment = yield EndTrial()
    return moment


def _quiet(settings: Settings) -> Calm:
    """Wait until no compile ran for ``calm_steps`` steps; true if that never came."""
    moment = yield Enter("cold")
    if settings.fixed:
        yield Wait(FIXED_QUIET_STEPS, watch=True)
        yield Steady(never_quiet=False)
        return False
    never = not (yield from _calm(moment, Enter("warmup")))
    yield Steady(never_quiet=never)
    return never


def _calm(moment: Moment, warm: Enter | None = None, *, variants: int = 0) -> Calm:
    """Whether compiling stopped within the limits; ``warm``: said at the first calm step.

    Where ``variants`` are allowed: for as many steps as compiled one, whatever their order.
    """
    began, calm, wanted = moment.seconds, 0, moment.calm_steps
    busy: list[bool] = []
    while calm < wanted and not moment.trial_over:
        before = moment.compiles
        moment = yield Wait(1, watch=True)
        busy.append(moment.compiles > before)
        calm = 0 if busy[-1] else calm + 1
        wanted = max(moment.calm_steps, sum(busy) if variants else 0)
        if calm and warm is not None:
            moment, warm = (yield warm), None
        steps, most_s = len(busy), QUIET_SECONDS_LIMIT + SECONDS_A_VARIANT * variants
        too_long = steps >= max(QUIET_STEPS_LIMIT, STEPS_A_VARIANT * variants)
        too_long |= steps >= QUIET_STEPS_LEAST and moment.seconds - began >= most_s
        too_long |= not variants and steps >= BUSY_STEPS <= 2 * sum(busy[-BUSY_STEPS:])
        if calm < wanted and too_long:
            return False
    return True


class _Blocks:
    """Pairs of blocks: how long each is, which stance comes first, when there are enough."""

    def __init__(self, settings: Settings, first_pair: int, *, never_quiet: bool) -> None:
        self._settings = settings
        self._first_pair = first_pair
        self._never_quiet = never_quiet
        self._sizes: dict[Stance, int] = {}
        self._spent_ms = self._timed_ms = 0.0  # timed: in pairs in which nothing was compiled
        self._began: int | None = None
        self._attempts = 0
        self.wanted = settings.blocks
        if self.wanted is None and (settings.fixed or len(settings.stances) == 1):
            self.wanted = DEFAULT_BLOCKS
        self.pairs = 0
        self.full = 0

    def complete(self, moment: Moment) -> bool:
        """Whether the speedup is known well enough, or more pairs are not worth their time."""
        wanted = self.wanted
        if self._settings.fixed:
            return self.pairs >= (wanted or 0)
        least, spent = min(LEAST_PAIRS, wanted or LEAST_PAIRS), self._spent_ms
        if spent >= self._settings.budget_ms and self.pairs >= least:
            enough = self._settings.trial is None or len(self._counting(moment)) >= least
            return enough or spent >= MOST_BUDGETS * self._settings.budget_ms
        if wanted is not None:
            enough = self.full >= wanted or self._attempts >= 2 * wanted
            return enough or self.pairs >= wanted + GROWING_PAIRS
        return self.pairs >= MOST_PAIRS or self._is_exact(moment)

    def _is_exact(self, moment: Moment) -> bool:
        pairs = self._counting(moment)
        found = interval(pairs) if len(pairs) >= FEWEST and self._timed_ms >= NARROW_MS else None
        return found is not None and found[1] <= NARROW * found[0]

    def _counting(self, moment: Moment) -> list[Pair]:
        return counting(moment.pairs, self._first_pair, restless=self._never_quiet)

    def enough_to_profile(self, moment: Moment) -> bool:
        """Early, because the script's length is unknown: a training script may end after 30 steps.

        Not where the profiler stays attached: every later launch would cost some microseconds more
        (seen on an H200 with torch 2.11: a launch-bound step went from 2.6 to 3.7 ms).
        """
        early = SMALL_PAIRS[moment.step_kind]
        return not moment.profiler_stays and self.pairs >= min(self.wanted or early, early)

    def enough_for_longer(self, moment: Moment) -> bool:
        """As soon as they are a small part: a noisy script may end before it is known exactly."""
        return self.wanted is None and not moment.profiler_stays and self._timed_ms >= NARROW_MS

    def shown(self, moment: Moment) -> str:
        """``3/12``: the pair that comes next, and how many there will be, as far as is known."""
        if self.wanted is not None:
            done = self.pairs if self._settings.fixed else self.full
            return f"{min(done + 1, self.wanted)}/{self.wanted}"
        pairs = self._counting(moment)
        number, total = len(pairs) + 1, float(max(FEWEST, len(pairs) + 1))
        if (found := interval(pairs)) is not None and self._spent_ms:
            # An interval narrows with the square root of the number of pairs.
            narrower = (math.log(found[1] / found[0]) / math.log(NARROW)) ** 2
            affordable = self._settings.budget_ms / self._spent_ms
            longer = min(max(narrower, NARROW_MS / self._spent_ms), affordable)
            total = min(max(total, math.ceil(len(pairs) * longer)), MOST_PAIRS)
        return f"{number}/{max(number, int(total))}"

    def phase(self, moment: Moment) -> Enter:
        """The phase of the pair that comes next."""
        trial, shown = self._settings.trial, self.shown(moment)
        return Enter("trial", f"{trial}, pair {shown}") if trial else Enter("block", shown)

    def pair(self, moment: Moment) -> Steps:
        """One block in every stance; the stance that comes first alternates."""
        self._began = moment.step if self._began is None else self._began
        order = self._settings.stances if self.pairs % 2 == 0 else self._settings.stances[::-1]
        compiles, before = moment.compiles, moment.step - self._began
        full, spent = True, self._spent_ms
        for stance in order:
            size = self._size(stance, moment, before)
            full = full and 2 * size >= self._target(stance, moment)  # estimates waver
            moment = yield Take(stance)
            skipped = self._skip(stance, size, moment)
            moment = yield from _block(stance, self._first_pair + self.pairs, size, skipped)
            self._sizes[stance] = size
            self._spent_ms += size * moment.estimate(stance)
        if self._never_quiet or moment.compiles == compiles:
            self._timed_ms += self._spent_ms - spent
        shown, self.pairs = self.shown(moment), self.pairs + 1
        if full:
            self._attempts += 1
            self.full += self._never_quiet or moment.compiles == compiles
        if self.wanted is None or self.shown(moment) != shown:
            moment = yield self.phase(moment)
        return moment

    def _size(self, stance: Stance, moment: Moment, before: int) -> int:
        """Timed steps of the next block; ``before``: steps since the first pair began."""
        target = self._target(stance, moment)
        previous = self._sizes.get(stance)
        if self._settings.steps is not None or self._settings.fixed:
            return target
        first = min(target, 3 if moment.estimate(stance) < SHORT_STEP_MS else 2)
        if previous is None:
            return first
        if self.wanted is not None:
            small = moment.step_kind == "optimizer" and self.pairs < SMALL_PAIRS["optimizer"]
            return min(target, previous if small else previous * GROWTH)
        if self.pairs < SMALL_PAIRS[moment.step_kind]:
            return first
        skipped = self._skip(stance, target, moment)
        if previous * moment.estimate(stance) >= LEAST_BLOCK_MS:
            longest = longest_worthwhile(self._counting(moment), skipped)
            if longest is not None and longest <= previous:
                return min(previous, target)
        return min(target, max(previous, LEAST_PER_SKIPPED * skipped, before // GROWTH_SHARE))

    def _target(self, stance: Stance, moment: Moment) -> int:
        """Steps of a block of full length."""
        if self._settings.steps is not None:
            return max(1, self._settings.steps)
        if self._settings.fixed:
            return FIXED_BLOCK_STEPS
        return max(2, moment.block_steps(stance))

    def _skip(self, stance: Stance, size: int, moment: Moment) -> int:
        """Steps left out after a switch."""
        if self._settings.fixed:
            return 3
        small, step_ms = size <= 3, moment.estimate(stance)
        if step_ms >= LONG_STEP_MS:
            return 1
        if moment.step_kind == "optimizer" or step_ms >= SHORT_STEP_MS:
            return 1 if small else 2
        return 2 if small else 3


def _windows(settings: Settings, moment: Moment, *, late: bool = False) -> Steps:
    """Two profiler windows per stance, after a warm-up step in that stance."""
    for number, stance in enumerate(settings.stances, start=1):
        yield Enter("profile", f"{number}/{len(settings.stances)}")
        yield Take(stance)
        yield Wait(1)
        moment = yield OpenWindow(stance)
        yield Wait(_window_steps(settings, stance, moment, longer=late), watch=True)
        moment = yield CloseWindow()
        step_ms = moment.estimate(stance)
        if step_ms > LONGEST_MARKED_MS and not settings.fixed:
            why = f"a step takes {step_ms / 1000:.1f} s, too long to run another one for it"
            moment = yield LeaveOut(f"marking source lines in one step ({stance})", why)
            continue
        # Ranges of others (an optimizer's, the script's own) may be open at an edge. They have to
        # end before the next profiler starts, so a step lies between: torch would write their end
        # into the last one's freed memory.
        yield Wait(1)
        yield OpenWindow(stance, "lines")
        yield Wait(1, watch=True)
        moment = yield CloseWindow()
    return moment


def _longer_windows(settings: Settings, moment: Moment) -> Steps:
    """The windows for time again, in the state in which the last blocks were timed.

    An early window is short, and its first steps pay for the profiler's own start. Of two windows
    of a stance the later one counts. A machine that is shared, or held at its power limit, is some
    percent faster or slower for a while, so a block stands before and after the window.
    """
    for number, stance in enumerate(settings.stances, start=1):
        steps = _window_steps(settings, stance, moment, longer=True)
        if steps <= _window_steps(settings, stance, moment):
            continue
        yield Enter("profile", f"{number}/{len(settings.stances)}, longer")
        moment = yield Take(stance)
        moment = yield from _beside(settings, stance, moment)
        if moment.device and not settings.fixed:
            # Attaching the profiler leaves the device idle for a while. One held at its power limit
            # then runs faster for some 50 ms (seen on an H200: a matrix product of 203 µs in a
            # block, 178 µs behind a pause). So it is attached a block's length before it writes.
            yield PrepareWindow(stance)
            yield Wait(min(MOST_SETTLING_STEPS, max(1, moment.block_steps(stance))))
        yield OpenWindow(stance)
        yield Wait(steps, watch=True)
        moment = yield CloseWindow()
        if not moment.profiler_stays:
            moment = yield from _beside(settings, stance, moment)
    return moment


def _beside(settings: Settings, stance: Stance, moment: Moment) -> Steps:
    """A block of full length, of no pair, after some steps that are left out."""
    fitting = FIXED_BLOCK_STEPS if settings.fixed else max(3, moment.block_steps(stance))
    return (yield from _block(stance, None, settings.steps or fitting, skipped=3))


def _block(stance: Stance, pair: int | None, size: int, skipped: int) -> Steps:
    yield Wait(skipped)
    yield OpenBlock(stance, pair, size, skipped)
    yield Wait(size)
    return (yield CloseBlock())


def _window_steps(
    settings: Settings, stance: Stance, moment: Moment, *, longer: bool = False
) -> int:
    """``longer``: steps that last about LONG_WINDOW_MS, few enough for a trace that can be read."""
    if settings.fixed:
        return FIXED_WINDOW_STEPS if longer else 3
    step_ms = moment.estimate(stance)
    short = ((2.0, 10), (50.0, 5)) if moment.step_kind == "call" else ()
    steps = next((steps for limit, steps in (*short, (2000.0, 3)) if step_ms < limit), 2)
    if not longer or step_ms > LONG_WINDOW_MS:
        return steps
    least, most = LONG_WINDOW_STEPS
    most = int(min(most, moment.most_steps.get(stance, most)))
    return max(steps, min(most, max(least, math.ceil(LONG_WINDOW_MS / step_ms))))
