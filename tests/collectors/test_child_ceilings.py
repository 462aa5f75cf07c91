"""What the device can do: bytes and operations over time, within its time, and never an error."""

from __future__ import annotations

import time
from functools import partial

import pytest

from traceview.collectors.child import ceilings
from traceview.collectors.child.ceilings import NotMeasured, Way, best_rate


@pytest.fixture(scope="module", autouse=True)
def import_torch():
    """Here, since it takes seconds of every worker that collects this module."""
    global torch
    torch = pytest.importorskip("torch")


HOST = ceilings.Gauge(ceilings._timed, "host", "1 thread")


class Clock:
    """Runs that take what they are said to take; ``rested`` at how many runs there was a rest."""

    def __init__(self, monkeypatch):
        self.now, self.runs, self.rested = 100.0, 0, []
        monkeypatch.setattr(ceilings.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(ceilings.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds
        if seconds:
            self.rested.append(self.runs)

    def timed(self, act, runs):
        times = [act() for _ in range(runs)]
        self.runs += runs
        self.now += sum(times)
        return times


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Heard:
    def __init__(self):
        self.events = []

    def write(self, event, **keys):
        self.events.append((event, keys))

    def note(self, what, why):
        self.events.append(("note", {"what": what, "why": str(why)}))

    def of(self, kind):
        return [keys for event, keys in self.events if event == kind]


def test_the_best_way_gives_the_rate(clock):
    ways = [Way(lambda: 0.02, 10.0, "slow"), Way(lambda: 0.01, 10.0, "fast")]
    way, rate, runs = best_rate(ways, clock.timed, clock.now + 1.0)
    assert (way.size, rate) == ("fast", 1000.0)
    assert runs == ceilings.LEAST_RUNS + ceilings.MOST_RUNS


def test_a_way_that_would_last_too_long_is_passed_over(clock):
    ways = [Way(lambda: 0.1, 1.0, "small"), Way(lambda: 100.0, 2000.0, "large")]
    way, rate, _ = best_rate(ways, clock.timed, clock.now + 1.0)
    assert (way.size, rate) == ("small", 10.0)
    assert clock.now < 101.1


def test_the_first_way_is_tried_however_little_time_there_is(clock):
    way, rate, runs = best_rate([Way(lambda: 5.0, 10.0, "only")], clock.timed, clock.now)
    assert (way.size, rate, runs) == ("only", 2.0, ceilings.LEAST_RUNS)


def test_a_device_rests_before_the_best_way_is_measured_at_length(clock):
    ways = [Way(lambda: 0.01, 10.0, "one"), Way(lambda: 0.02, 10.0, "other")]
    _, _, runs = best_rate(ways, clock.timed, clock.now + 1.0, rest_s=0.685)
    assert clock.rested == [2 * (1 + ceilings.LEAST_RUNS)]
    assert runs == ceilings.LEAST_RUNS + 19  # in the 0.195 s that are left


def test_a_median_is_no_mean(clock):
    times = iter([9.0, 1.0, 50.0, 2.0])
    _, rate, _ = best_rate([Way(lambda: next(times), 4.0, "x")], clock.timed, clock.now)
    assert rate == 2.0


def test_what_fails_is_noted_and_the_rest_is_measured(monkeypatch):
    def broken(_deadline):
        raise RuntimeError("out of memory")

    def unknown(_deadline):
        raise NotMeasured("the size of the L2 is not known")

    found = ceilings.Ceiling("copy", 1.0, "GB/s", 3, "host")
    tasks = [("a", broken), ("b", unknown), ("c", lambda _deadline: found)]
    monkeypatch.setattr(ceilings, "host_tasks", lambda _torch: tasks)
    heard = Heard()
    ceilings.write_ceilings(torch, heard, device=False)
    whys = [keys["why"] for keys in heard.of("note")]
    assert whys == ["out of memory", "the size of the L2 is not known"]
    assert heard.of("ceiling") == [{"device": "cpu", **vars(found)}]


def test_after_two_seconds_nothing_is_begun(monkeypatch, clock):
    def slow(_deadline):
        clock.now += 3.0
        return ceilings.Ceiling("copy", 1.0, "GB/s", 3, "host")

    tasks = [("first", slow), ("second", slow)]
    monkeypatch.setattr(ceilings, "host_tasks", lambda _torch: tasks)
    heard = Heard()
    ceilings.write_ceilings(torch, heard, device=False)
    assert len(heard.of("ceiling")) == 1
    assert "second" in heard.of("note")[0]["what"]


def test_products_and_copies_do_what_they_say():
    arena = torch.zeros(8 << 20, dtype=torch.uint8)
    seed = torch.Generator().manual_seed(1)
    state = torch.get_rng_state()
    ways = list(ceilings.matmuls(torch, arena, torch.float32, (256, 512, 4096), seed))
    assert [way.size for way in ways] == ["256x256x256"] * 2 + ["512x512x512"] * 2
    assert ways[-1].amount == 2 * 512**3
    product = ways[-1].act()
    left, right = arena.view(torch.float32)[: 2 * 512 * 512].view(2, 512, 512)
    torch.testing.assert_close(product, left @ right.t())
    assert left.std().item() == pytest.approx(1.0, abs=0.05)
    assert torch.equal(torch.get_rng_state(), state)  # the script's own

    arena[: 1 << 19] = 3
    for way in ceilings.copies(torch, arena, 1 << 20):
        assert (way.amount, way.size) == (1 << 20, "1 MiB")
        copied = way.act()
        assert copied.numel() * copied.element_size() == 1 << 19
        assert copied.data_ptr() == arena[1 << 19 :].data_ptr()


def test_passes_over_the_same_bytes_are_one_copy_of_many_times_their_size(monkeypatch):
    monkeypatch.setattr(ceilings, "_L2_PASSES_BYTES", 1e8)
    arena = torch.arange(1 << 20, dtype=torch.int64).view(torch.uint8)
    way = ceilings._passes(torch, arena, 1 << 20)
    copied = way.act()
    assert way.amount == 2 * copied.numel() * copied.element_size()
    assert way.amount == pytest.approx(1e8, rel=0.01)
    touched = 2 * ((copied.shape[0] - 1) * 128 + (1 << 19))
    assert touched < 1.1 * (1 << 20)  # all else of the amount comes from the cache
    assert copied.untyped_storage().nbytes() == arena.numel()


def test_caches_are_those_of_data(tmp_path):
    for index, (kind, level, size) in enumerate(
        [("Data", "1", "32K"), ("Instruction", "1", "64K"), ("Unified", "2", "1024K"),
         ("Unified", "3", "32768K"), ("Unified", "x", "1K")]
    ):  # fmt: skip
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("type", kind), ("level", level), ("size", size)):
            (folder / name).write_text(text + "\n")
    assert ceilings.cache_sizes(tmp_path) == {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}
    assert ceilings.cache_sizes(tmp_path / "none") == {}


def test_free_memory_is_the_least_of_machine_and_control_group(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    free = partial(ceilings.free_bytes, meminfo, tmp_path)
    assert free() == 8000 << 10
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("4000000\n")
    assert free() == 1_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free() == 8000 << 10


def test_with_next_to_no_memory_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(ceilings, "free_bytes", lambda: 64 << 20)
    heard = Heard()
    ceilings.write_ceilings(torch, heard, device=False)
    assert heard.of("ceiling") == []
    assert "8 MiB" in heard.of("note")[0]["why"]


def test_a_run_by_the_host_clock_is_as_long_as_it_is():
    (seconds,) = ceilings._timed(lambda: time.sleep(0.01), 1)
    assert 0.01 <= seconds < 1.0


def test_a_page_fault_takes_some_time_and_what_is_not_counted_has_no_cost(monkeypatch):
    for left in reversed(range(20)):  # a busy machine may disturb it, which the next test is about
        try:
            found = ceilings._page_fault(torch, HOST, time.monotonic() + 1.0)
            break
        except NotMeasured:
            assert left
    assert (found.kind, found.unit, found.size) == ("page_fault", "us", "16 MiB")
    assert 0.01 < found.value < 100.0
    assert found.runs >= ceilings.LEAST_RUNS
    monkeypatch.setattr(ceilings, "page_faults", lambda: 0)
    with pytest.raises(NotMeasured, match="not counted"):
        ceilings._page_fault(torch, HOST, time.monotonic() + 1.0)


def test_a_page_fault_that_other_work_disturbs_is_not_measured(monkeypatch):
    def slower_each_time(fill, runs):
        fill()
        return [float(runs)] * runs

    monkeypatch.setattr(ceilings, "_timed", slower_each_time)
    with pytest.raises(NotMeasured, match="disturbed"):
        ceilings._page_fault(torch, HOST, time.monotonic() + 0.1)
