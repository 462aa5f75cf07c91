"""What scripts say of their own steps: which of them count, and for which stance."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "fixtures" / "scenarios"))

import _truth


def steps(*stretches):
    """(profiled, milliseconds) of each step; a stretch is (how many, profiled, milliseconds)."""
    return [(profiled, ms) for count, profiled, ms in stretches for _ in range(count)]


def test_the_steps_beside_the_profiled_ones_count_as_many_on_either_side():
    taken = steps(
        (50, False, 9.0), (3, False, 1.0), (3, True, 5.0), (3, False, 3.0), (9, False, 9.0)
    )
    assert _truth._amounts(taken) == {"ms": pytest.approx(2.0), "profiled_ms": pytest.approx(5.0)}


def test_of_two_windows_the_longer_or_later_one_counts():
    first = ((4, False, 1.0), (4, True, 1.0), (4, False, 1.0))
    later = ((4, False, 2.0), (4, True, 6.0), (4, False, 2.0))
    lines = ((1, True, 9.0), (2, False, 2.0))
    assert _truth._amounts(steps(*first, *later, *lines))["profiled_ms"] == pytest.approx(6.0)
    assert _truth._amounts(steps(*later, *lines, *first[:1]))["profiled_ms"] == pytest.approx(6.0)


def test_a_profiled_step_is_never_beside_one():
    taken = steps((2, False, 1.0), (3, True, 8.0), (1, False, 1.0), (1, True, 8.0), (4, False, 1.0))
    assert _truth._amounts(taken)["ms"] == pytest.approx(1.0)


def test_without_a_profiler_all_steps_count():
    assert _truth._amounts(steps((3, False, 1.0), (1, False, 2.0))) == {"ms": pytest.approx(1.0)}


def test_each_stance_has_its_own(monkeypatch):
    took = _truth.InSteps()
    for stance in ("eager", "compiled", "eager"):
        monkeypatch.setattr(_truth, "_stance", lambda stance=stance: stance)
        with took:
            pass
    found = took.amounts()
    assert set(found) == {"eager", "compiled"}
    assert all(amount["ms"] >= 0 for amount in found.values())
    assert len(took._taken["eager"]) == 2
