"""The measuring plan as a pure generator: a made-up script's steps go in, orders come out."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from traceview.collectors.child import plan
from traceview.collectors.child.pairs import FEWEST, Pair, interval, longest_worthwhile


class Script:
    """Steps of known length per stance; compiles when told to."""

    def __init__(
        self,
        eager_ms=0.4,
        compiled_ms=0.1,
        compiles_at=(0,),
        ratios=None,
        refused=(),
        busy_pairs=0,
        **moment,
    ):
        self.busy_pairs = busy_pairs
        self.ms = {"eager": eager_ms, "compiled": compiled_ms, "trial": compiled_ms}
        self.refused, self.trial = refused, None
        self.compiles_at = compiles_at
        self.moment = moment
        self.step = self.compiles = 0
        self.seconds = 0.0
        self.stance = "compiled"
        self.known = {"compiled": compiled_ms}  # as the watched steps have shown
        self.orders = []
        self.ratios, self.pairs = ratios, []

    def now(self):
        known = dict(self.known)
        return plan.Moment(
            self.step,
            self.seconds,
            self.compiles,
            known,
            pairs=self.pairs,
            trial_over=self.trial in self.refused,
            **self.moment,
        )

    def run(self, settings, steps=10**9, first_pair=0, trials=()):
        """Whether the plan came to its end before the script did."""
        running = plan.measuring_plan(settings, first_pair)
        if trials:
            running = plan.trials_plan(settings, trials, first_pair)
        order = next(running)
        try:
            while True:
                self.orders.append((self.step, order))
                if isinstance(order, plan.Take):
                    self.stance = order.stance
                if isinstance(order, plan.BeginTrial):
                    self.trial = order.name
                if isinstance(order, plan.EndTrial):
                    self.trial = None
                if isinstance(order, plan.CloseBlock):
                    self.known[self.stance] = self.ms[self.stance]
                    self.close()
                if isinstance(order, plan.Wait) and not self.pass_steps(order.steps, steps):
                    return False
                order = running.send(self.now())
        except StopIteration:
            return True

    def close(self):
        """A pair is measured with its second block; ``ratios`` gives what comes out."""
        blocks = self.paired
        if self.ratios and len(blocks) % 2 == 0:
            one, two = blocks[-2:]
            length = 2 * one.steps * two.steps / (one.steps + two.steps)
            compiles = int(one.pair < self.busy_pairs)
            self.pairs.append(Pair(one.pair, self.ratios(one.pair), length, compiles))

    def pass_steps(self, count, limit):
        for _ in range(count):
            self.compiles += self.step in self.compiles_at
            self.seconds += self.ms[self.stance] / 1000
            self.step += 1
        return self.step < limit

    def of(self, kind):
        return [order for _, order in self.orders if isinstance(order, kind)]

    @property
    def paired(self):
        return [block for block in self.of(plan.OpenBlock) if block.pair is not None]

    @property
    def windows(self):
        return [(order.stance, order.purpose) for order in self.of(plan.OpenWindow)]


def both(*stances):
    return [(stance, purpose) for stance in stances for purpose in ("time", "lines")]


def test_quiet_means_three_steps_without_a_compile():
    script = Script(compiles_at=(0, 2))
    script.run(plan.Settings(), steps=2000)
    (at,) = [step for step, order in script.orders if isinstance(order, plan.Steady)]
    assert at == 6  # the compile ran in step 2; steps 3, 4 and 5 were quiet
    assert [o.phase for o in script.of(plan.Enter)][:3] == ["cold", "warmup", "block"]


def test_cudagraphs_wait_longer():
    script = Script(calm_steps=5)
    script.run(plan.Settings(), steps=2000)
    (at,) = [step for step, order in script.orders if isinstance(order, plan.Steady)]
    assert at == 6


def test_a_script_that_compiles_for_ever_is_measured_all_the_same():
    script = Script(compiles_at=range(10**6))
    assert script.run(plan.Settings(blocks=2))
    assert script.of(plan.Steady) == [plan.Steady(never_quiet=True)]
    assert len(script.of(plan.OpenBlock)) >= 4


@pytest.mark.parametrize(("every", "given_up"), [(1, 24), (2, 24), (3, 64)])
def test_steps_that_mostly_compile_are_soon_taken_for_what_the_script_does(every, given_up):
    script = Script(compiles_at=range(0, 10**6, every))
    script.run(plan.Settings(), steps=100)
    found = [(step, order) for step, order in script.orders if isinstance(order, plan.Steady)]
    assert found == [(given_up, plan.Steady(never_quiet=True))]


def test_a_slow_first_compile_is_no_reason_to_give_up():
    script = Script(compiled_ms=120_000.0)
    script.run(plan.Settings(), steps=8)
    assert script.of(plan.Steady) == [plan.Steady(never_quiet=False)]


def test_pairs_alternate_their_order_and_grow_to_full_length():
    script = Script(device=True)
    assert script.run(plan.Settings(blocks=4))
    blocks = script.paired
    order = ["eager", "compiled", "compiled", "eager"]
    assert [b.stance for b in blocks[:4]] == order
    assert Counter(b.pair for b in blocks) == dict.fromkeys(range(len(blocks) // 2), 2)
    sizes = [b.steps for b in blocks if b.stance == "compiled"]
    assert sizes[0] == 3
    assert all(later <= 2 * earlier for earlier, later in pairwise(sizes))
    assert sizes[-1] == 1500  # 150 ms of 0.1 ms steps
    assert sum(b.steps >= 250 for b in blocks) >= 4


def test_every_block_leaves_out_the_steps_after_the_switch():
    script = Script()
    script.run(plan.Settings(blocks=2))
    for index, (_, order) in enumerate(script.orders):
        if isinstance(order, plan.OpenBlock):
            assert script.orders[index - 1][1] == plan.Wait(order.skipped)
            taken = [o for _, o in script.orders[:index] if isinstance(o, plan.Take)]
            assert taken[-1] == plan.Take(order.stance)
            before = script.orders[index - 2][1]
            assert before == taken[-1] or (order.pair is None and before == plan.CloseWindow())
            assert order.skipped >= 1


@pytest.mark.parametrize("step_ms", [1.0, 27.0, 400.0])
def test_a_training_script_of_thirty_steps_gets_pairs_and_both_stances_windows(step_ms):
    script = Script(eager_ms=step_ms, compiled_ms=step_ms, step_kind="optimizer")
    assert not script.run(plan.Settings(), steps=30)
    assert len(script.of(plan.CloseBlock)) >= 4
    assert script.windows[:3] == [*both("eager"), ("compiled", "time")]
    two_more = Script(eager_ms=step_ms, compiled_ms=step_ms, step_kind="optimizer")
    two_more.run(plan.Settings(), steps=32)
    assert two_more.windows == both("eager", "compiled")


def test_a_hundred_calls_are_enough_for_three_pairs_and_both_windows():
    script = Script()
    assert not script.run(plan.Settings(), steps=100)
    assert len(script.of(plan.CloseBlock)) >= 6
    assert script.windows == both("eager", "compiled")


def test_where_the_profiler_stays_attached_nothing_is_timed_after_it():
    script = Script(device=True, profiler_stays=True)
    assert script.run(plan.Settings())
    assert script.windows == both("eager", "compiled")
    kinds = [type(order) for _, order in script.orders]
    assert plan.OpenBlock not in kinds[kinds.index(plan.OpenWindow) :]


def test_slow_steps_stop_at_the_time_budget_after_five_pairs():
    script = Script(eager_ms=3000.0, compiled_ms=2000.0, step_kind="optimizer")
    assert script.run(plan.Settings(blocks=8))
    assert len(script.of(plan.OpenBlock)) == 10
    assert {b.steps for b in script.of(plan.OpenBlock)} == {2}


def test_a_pair_with_a_compile_inside_is_repeated():
    calm = Script(eager_ms=20.0, compiled_ms=20.0)
    calm.run(plan.Settings(blocks=3, steps=4))
    noisy = Script(eager_ms=20.0, compiled_ms=20.0, compiles_at=(0, 9))
    noisy.run(plan.Settings(blocks=3, steps=4))
    assert len(noisy.of(plan.OpenBlock)) == len(calm.of(plan.OpenBlock)) + 2


def test_a_compile_in_a_pair_is_no_time_that_was_measured():
    """Eleven seconds of it had the windows come again, longer, until the script was over."""
    script = Script(8.0, 6.0, compiles_at=(0, 12), ratios=lambda _pair: 1.3)
    close = script.close

    def compiling():
        if len(script.paired) == 3:  # step 12 lies in it
            script.known["compiled"] = 5700.0
        close()

    script.close = compiling
    script.run(plan.Settings(), steps=2000)
    given = [order for _, order in script.orders]
    details = [getattr(order, "detail", None) for order in given]
    longer = details.index("1/2, longer")
    blocks = [each for each in given[:longer] if isinstance(each, plan.OpenBlock)]
    assert sum(each.steps * script.ms[each.stance] for each in blocks) >= plan.NARROW_MS


def test_fixed_steps_do_not_depend_on_times_or_compiles():
    settings = plan.Settings(fixed=True, blocks=3)
    fast, slow = Script(), Script(eager_ms=90.0, compiled_ms=70.0, compiles_at=(0, 5, 30, 41))
    assert fast.run(settings)
    assert slow.run(settings)
    assert fast.orders == slow.orders
    assert {b.steps for b in fast.of(plan.OpenBlock)} == {10}


def test_steps_option_fixes_the_block_length():
    script = Script()
    script.run(plan.Settings(steps=7, blocks=2))
    assert {b.steps for b in script.of(plan.OpenBlock)} == {7}


def test_a_lines_window_is_one_step_soon_after_its_time_window():
    script = Script()
    script.run(plan.Settings(blocks=1))
    given = [order for _, order in script.orders]
    for stance in ("eager", "compiled"):
        at = given.index(plan.OpenWindow(stance, "lines"))
        assert given[at - 2 : at] == [plan.CloseWindow(), plan.Wait(1)]
        assert given[at + 1 : at + 3] == [plan.Wait(1, watch=True), plan.CloseWindow()]


def test_a_step_of_six_seconds_is_not_run_for_its_lines_unless_all_ranks_run_it():
    slow = Script(eager_ms=6000.0, compiled_ms=4000.0)
    slow.run(plan.Settings(blocks=1))
    assert slow.windows == [("eager", "time"), *both("compiled")]
    (left_out,) = slow.of(plan.LeaveOut)
    assert "eager" in left_out.what
    assert "6.0 s" in left_out.why
    ranks = Script(eager_ms=6000.0, compiled_ms=4000.0)
    ranks.run(plan.Settings(blocks=1, fixed=True))
    longer = [("eager", "time"), ("compiled", "time")]
    assert ranks.windows == [*both("eager", "compiled"), *longer]


@pytest.mark.parametrize("stance", ["eager", "compiled"])
def test_one_stance_only(stance):
    script = Script()
    assert script.run(plan.Settings(stances=(stance,), blocks=2))
    assert {order.stance for order in script.of(plan.Take)} == {stance}
    assert script.windows == [*both(stance), (stance, "time")]


def test_pairs_go_on_counting_after_a_new_anchor():
    script = Script()
    script.run(plan.Settings(blocks=1, profile=False), first_pair=5)
    assert script.of(plan.OpenBlock)[0].pair == 5
    assert script.windows == []


def test_the_windows_for_time_come_once_more_and_longer_after_the_last_block():
    script = Script(eager_ms=8.0, compiled_ms=1.0)
    assert script.run(plan.Settings(blocks=5))
    late = [("eager", "time"), ("compiled", "time")]
    assert script.windows == [*both("eager", "compiled"), *late]
    given = [order for _, order in script.orders]
    last = given.index(script.paired[-1])
    beside = ["OpenBlock", "Wait", "CloseBlock"]
    around = [
        "Enter",
        "Take",
        "Wait",
        *beside,
        "OpenWindow",
        "Wait",
        "CloseWindow",
        "Wait",
        *beside,
    ]
    assert [type(order).__name__ for order in given[last + 3 :]] == around * 2
    assert {block.steps for block in script.of(plan.OpenBlock) if block.pair is None} == {13, 100}
    lengths = [
        script.orders[at + 1][1].steps
        for at, (_, order) in enumerate(script.orders)
        if isinstance(order, plan.OpenWindow) and order.purpose == "time"
    ]
    assert lengths == [5, 10, 19, 60]


def test_a_longer_window_is_no_longer_than_its_trace_may_be_large():
    most = {"eager": 7.0, "compiled": 2.0}
    script = Script(eager_ms=8.0, compiled_ms=8.0, most_steps=most)
    assert script.run(plan.Settings(blocks=5))
    assert script.windows == [*both("eager", "compiled"), ("eager", "time")]
    lengths = [
        script.orders[at + 1][1].steps
        for at, (_, order) in enumerate(script.orders)
        if isinstance(order, plan.OpenWindow) and order.purpose == "time"
    ]
    assert lengths == [5, 5, 7], "a window as short as the first shows no more than that"


def test_on_a_device_the_profiler_is_attached_a_block_before_it_writes():
    script = Script(eager_ms=8.0, compiled_ms=0.1, device=True)
    assert script.run(plan.Settings(blocks=5))
    given = [order for _, order in script.orders]
    at = [index for index, order in enumerate(given) if isinstance(order, plan.PrepareWindow)]
    assert [given[index].stance for index in at] == ["eager", "compiled"]
    assert [given[index + 1] for index in at] == [plan.Wait(19), plan.Wait(500)]
    assert [given[index + 2] for index in at] == [
        plan.OpenWindow("eager"),
        plan.OpenWindow("compiled"),
    ]


def test_slow_steps_are_profiled_once():
    script = Script(eager_ms=400.0, compiled_ms=300.0)
    assert script.run(plan.Settings(blocks=3))
    assert script.windows == both("eager", "compiled")


@pytest.mark.parametrize("kind", ["call", "optimizer"])
@pytest.mark.parametrize(("steps", "ms"), [(150, 2.0), (210, 2.0), (570, 2.0), (400, 0.06)])
def test_most_steady_steps_of_a_script_that_ends_early_lie_in_blocks(kind, steps, ms):
    script = Script(ms, ms, step_kind=kind)
    assert not script.run(plan.Settings(), steps=steps)
    (steady,) = [step for step, order in script.orders if isinstance(order, plan.Steady)]
    closed = len(script.of(plan.CloseBlock))
    assert sum(block.steps for block in script.paired[:closed]) >= 0.5 * (steps - steady)
    assert closed // 2 >= FEWEST - 1


def test_the_run_stops_when_the_speedup_is_known_to_three_per_cent():
    steady = Script(2.0, 1.0, ratios=lambda _pair: 2.0)
    assert steady.run(plan.Settings())
    assert len(steady.paired) // 2 >= FEWEST
    ms = sum(block.steps * steady.ms[block.stance] for block in steady.paired)
    assert plan.NARROW_MS <= ms < 1.5 * plan.NARROW_MS
    random = Random(3)
    noisy = Script(2.0, 1.0, ratios=lambda _pair: random.lognormvariate(0.7, 0.05))
    assert noisy.run(plan.Settings())
    assert len(noisy.paired) > len(steady.paired)
    low, high = interval(noisy.pairs)
    assert high / low <= plan.NARROW


def test_what_stays_noisy_ends_with_the_budget():
    random = Random(4)
    script = Script(2.0, 1.0, ratios=lambda _pair: random.lognormvariate(0.7, 0.9))
    assert script.run(plan.Settings())
    ms = sum(block.steps * script.ms[block.stance] for block in script.paired)
    assert len(script.paired) == 2 * plan.MOST_PAIRS or ms >= plan.BUDGET_MS


def test_pairs_of_an_earlier_anchor_do_not_end_the_plan():
    before = [Pair(index, 2.0, 10_000.0) for index in range(30)]
    script = Script(2.0, 1.0, ratios=lambda _pair: 2.0)
    script.pairs = list(before)
    script.run(plan.Settings(), first_pair=30)
    assert len(script.pairs) >= len(before) + FEWEST


def test_a_number_of_blocks_is_kept_however_exact_the_speedup():
    script = Script(2.0, 1.0, ratios=lambda _pair: 2.0)
    assert script.run(plan.Settings(blocks=12))
    assert sum(block.steps >= 25 for block in script.paired) >= 24


def test_the_progress_shows_how_many_pairs_there_will_be_as_far_as_is_known():
    random = Random(5)
    script = Script(2.0, 1.0, ratios=lambda _pair: random.lognormvariate(0.7, 0.1))
    script.run(plan.Settings())
    shown = [o.detail for o in script.of(plan.Enter) if o.phase == "block"]
    assert shown[0] == f"1/{FEWEST}"
    numbers = [tuple(map(int, each.split("/"))) for each in shown]
    assert all(number <= total <= plan.MOST_PAIRS for number, total in numbers)
    assert numbers[-1][1] > FEWEST


def of(ratios, lengths=None):
    lengths = lengths or [10.0] * len(ratios)
    return [Pair(i, r, n) for i, (r, n) in enumerate(zip(ratios, lengths, strict=True))]


def test_the_interval_of_equal_pairs_is_that_of_the_sign_test():
    values = [1 + i / 100 for i in range(12)]
    assert interval(of(values)) == (values[2], values[9])  # 2 of 12 heads or fewer: 1.9 %
    assert interval(of(values[:6])) == (values[0], values[5])
    assert interval(of(values[:5])) is None
    assert interval([]) is None


def test_the_interval_weighs_pairs_by_their_length_up_to_half_the_longest():
    values = [9.0] * 4 + [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07]
    assert interval(of(values))[1] == 9.0
    assert interval(of(values, [2.0] * 4 + [100.0] * 8))[1] < 1.08
    assert interval(of(values, [60.0] * 4 + [100.0] * 8)) == interval(of(values))
    assert interval(of([1.0] * 12, [1.0] * 10 + [100.0] * 2)) is None, "two pairs, in effect"


def test_blocks_grow_while_longer_ones_scatter_less():
    random = Random(6)

    def scattered(within, between):
        lengths = [10.0] * 20 + [40.0] * 20
        sigma = [(between**2 + within**2 / n) ** 0.5 for n in lengths]
        return of([random.lognormvariate(0, s) for s in sigma], lengths)

    assert longest_worthwhile(scattered(0.5, 0.001), 3) > 40
    assert longest_worthwhile(scattered(0.02, 0.1), 3) < 10
    assert longest_worthwhile(of([1.0, 1.1] * 10), 3) is None, "of one length: not known"
    assert longest_worthwhile(of([1.0] * (FEWEST - 1)), 3) is None


def trials(script, names, *, baseline="compiled", seconds=2.0, **settings):
    asked = plan.Settings(stances=(baseline, "trial"), budget_ms=seconds * 1e3, **settings)
    return script.run(asked, trials=names)


@pytest.mark.parametrize("baseline", ["compiled", "eager"])
def test_each_trial_has_pairs_of_its_own(baseline):
    script = Script(eager_ms=8.0, compiled_ms=5.0, ratios=lambda _: 1.1)
    assert trials(script, ["one", "two"], baseline=baseline)
    begun = [
        order for _, order in script.orders if isinstance(order, plan.BeginTrial | plan.EndTrial)
    ]
    assert begun == [
        plan.BeginTrial("one"),
        plan.EndTrial(),
        plan.BeginTrial("two"),
        plan.EndTrial(),
    ]
    stances = [
        Counter(block.stance for block in script.paired if block.pair == pair)
        for pair in {block.pair for block in script.paired}
    ]
    assert all(each == {baseline: 1, "trial": 1} for each in stances)
    assert len(stances) >= 2 * FEWEST
    assert not script.windows


def test_a_trial_ends_by_its_own_budget():
    rng = Random(3)
    script = Script(eager_ms=20.0, compiled_ms=10.0, ratios=lambda _: rng.uniform(0.5, 2.0))
    assert trials(script, ["one", "two", "three"], seconds=1.0)
    per_trial = len(script.paired) / 3
    spent = sum(block.steps * script.ms[block.stance] for block in script.paired) / 3
    assert per_trial >= 10
    assert 1000 <= spent <= 2000


def test_a_trial_that_can_not_go_on_ends_at_the_next_edge():
    script = Script(eager_ms=8.0, compiled_ms=5.0, ratios=lambda _: 1.1, refused=("bad",))
    assert trials(script, ["bad", "good"])
    steps = {
        order.name: step for step, order in script.orders if isinstance(order, plan.BeginTrial)
    }
    assert steps["good"] == steps["bad"]
    assert {block.stance for block in script.paired} == {"compiled", "trial"}


@pytest.mark.parametrize(("variants", "calm"), [({}, False), ({"limit=64": 64}, True)])
def test_a_higher_recompile_limit_has_time_to_compile_its_variants(variants, calm):
    own = [4, *range(5, 60, 2), *range(60, 80)]  # 48 values, in any order
    script = Script(compiles_at=own, ratios=lambda _: 1.1)
    assert trials(script, ["limit=64"], variants=variants)
    first = next(step for step, order in script.orders if isinstance(order, plan.OpenBlock))
    assert (first >= 80 + len(own)) == calm


def test_a_trial_goes_on_until_enough_of_its_pairs_compiled_nothing():
    script = Script(eager_ms=20.0, compiled_ms=10.0, ratios=lambda _: 1.1, busy_pairs=7)
    assert trials(script, ["one"], seconds=0.5)
    assert len(script.paired) // 2 == 7 + plan.LEAST_PAIRS


def test_a_trial_that_never_stops_compiling_ends_all_the_same():
    script = Script(eager_ms=20.0, compiled_ms=10.0, ratios=lambda _: 1.1, busy_pairs=10**6)
    assert trials(script, ["one"], seconds=0.5)
    spent = sum(block.steps * script.ms[block.stance] for block in script.paired)
    assert 500 * plan.MOST_BUDGETS <= spent <= 500 * plan.MOST_BUDGETS + 1000


def test_between_trials_the_script_runs_as_it_is():
    script = Script(eager_ms=8.0, compiled_ms=5.0, ratios=lambda _: 1.1)
    assert trials(script, ["one", "two"])
    stance = None
    for _, order in script.orders:
        if isinstance(order, plan.Take):
            stance = order.stance
        if isinstance(order, plan.BeginTrial | plan.EndTrial):
            assert stance == "compiled"


def test_the_phase_of_a_trial_names_it():
    script = Script(eager_ms=8.0, compiled_ms=5.0, ratios=lambda _: 1.1)
    assert trials(script, ["dynamic=None"])
    said = [order.detail for order in script.of(plan.Enter) if order.phase == "trial"]
    assert said[0] == "1/1 dynamic=None"
    assert said[1].startswith("1/1 dynamic=None, pair 1/")


def test_a_trial_is_compiled_again_after_its_blocks_where_caches_are_its_own():
    script = Script(eager_ms=8.0, compiled_ms=5.0, ratios=lambda _: 1.1)
    assert trials(script, ["one"], again=True)
    begun = [
        (step, order)
        for step, order in script.orders
        if isinstance(order, plan.BeginTrial | plan.EndTrial)
    ]
    assert [order for _, order in begun] == [
        plan.BeginTrial("one"),
        plan.BeginTrial("one", again=True),
        plan.EndTrial(),
    ]
    last_block = max(step for step, order in script.orders if isinstance(order, plan.CloseBlock))
    assert last_block <= begun[1][0] < begun[2][0]


def test_what_can_not_go_on_is_not_compiled_again():
    script = Script(eager_ms=8.0, compiled_ms=5.0, refused=("bad",))
    assert trials(script, ["bad"], again=True)
    assert script.of(plan.BeginTrial) == [plan.BeginTrial("bad")]
