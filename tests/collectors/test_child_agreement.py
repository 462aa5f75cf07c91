"""How far two tensors are apart: hand-made ones."""

import pytest

from traceview.collectors.child.trial import agreement


@pytest.fixture(scope="module", autouse=True)
def import_torch():
    """Here, since it takes seconds of every worker that collects this module."""
    global torch
    torch = pytest.importorskip("torch")


NAN, INF = float("nan"), float("inf")


def beside(eager, other, exact=None, **more):
    as_tensors = [v if v is None else torch.as_tensor(v) for v in (eager, other, exact)]
    return agreement(torch, *as_tensors, **more)


def test_the_numbers_are_what_they_are_called():
    found = beside([1.0, 2.0], [1.0, 4.0], torch.tensor([1.0, 3.0], dtype=torch.float64))
    assert (found["shape"], found["dtype"], found["elements"]) == ([2], "float32", 2)
    assert found["max_abs_diff"] == 2.0
    assert found["rms_diff"] == pytest.approx(2**0.5)
    assert found["rmse"] == found["eager_rmse"] == pytest.approx(0.5**0.5)
    assert found["cosine"] == pytest.approx(9 / (5 * 17) ** 0.5)
    assert found["same"] is True, "as far from float64 as eager"


def test_further_from_float64_than_eager_is_beyond_the_limit():
    exact = torch.linspace(1, 2, 2000, dtype=torch.float64)
    eager = exact.float()
    assert beside(eager, eager + 1e-5, exact)["same"] is True
    assert beside(eager, eager + 1e-2, exact)["same"] is False
    assert beside(eager, eager + 1e-2, exact, spread=1e-2)["same"] is True


def test_low_precision_is_judged_beside_eager_not_by_bits():
    exact = 100 + torch.linspace(0, 1, 2000, dtype=torch.float64)
    eager = exact.to(torch.bfloat16)
    assert beside(eager, (exact + 0.3).to(torch.bfloat16), exact)["same"] is True
    assert beside(eager, (exact + 30).to(torch.bfloat16), exact)["same"] is False


def test_nan_and_infinities_in_the_same_places_are_the_same():
    found = beside([NAN, INF, -INF, 1.0], [NAN, INF, -INF, 1.0])
    assert (found["same"], found["differing"], found["max_abs_diff"]) == (True, 0, 0.0)


@pytest.mark.parametrize("other", [[NAN, 1.0], [INF, 1.0]])
def test_nan_or_infinity_on_one_side_is_no_rounding(other):
    found = beside([0.0, 1.0], other)
    assert (found["same"], found["differing"]) == (False, 1)
    assert all(value == value for value in found.values()), "no NaN in what is written"


def test_compiled_may_be_finite_where_eager_overflows():
    exact = torch.tensor([40000.0, 1.0], dtype=torch.float64)
    found = beside(torch.tensor([INF, 1.0]), torch.tensor([40000.0, 1.0]), exact)
    assert (found["same"], found["differing"]) == (True, 0)


def test_another_shape_or_dtype_is_said():
    found = beside([1.0, 2.0], [[1.0, 2.0]])
    assert found["same"] is False
    assert found["why"] == "float32[1, 2] on cpu, in eager float32[2] on cpu"
    assert beside([1.0], torch.tensor([1.0], dtype=torch.float64))["same"] is False


def test_whole_numbers_may_differ_in_few_elements():
    eager = torch.arange(1000)
    other = eager.clone()
    other[:10] += 1
    assert beside(eager, other) | {"shape": []} == {
        "shape": [], "dtype": "int64", "elements": 1000, "differing": 10, "same": True, "why": None,
    }  # fmt: skip
    assert beside(eager, eager + 1)["same"] is False
    assert beside([True, False], [True, False])["same"] is True


def test_complex_numbers_empty_ones_and_huge_ones():
    assert beside([1 + 1j], [1 + 1j])["same"] is True
    assert beside([1 + 1j], [1 - 1j])["max_abs_diff"] == 2.0
    nothing = beside(torch.zeros(0, 3), torch.zeros(0, 3))
    assert (nothing["same"], nothing["cosine"], nothing["scale"]) == (True, None, 0.0)
    huge = torch.tensor([1e300, 1e300], dtype=torch.float64)
    found = agreement(torch, huge, -huge, None)
    assert (found["same"], found["cosine"]) == (False, -1.0)
    assert found["rms_diff"] == pytest.approx(2e300)


def test_simple_values():
    assert agreement(torch, None, None, None)["same"] is True
    assert agreement(torch, NAN, NAN, None)["same"] is True
    assert agreement(torch, 1, 1.0, None) == {"same": False, "why": "float 1.0, in eager int 1"}


def test_tolerances_are_of_the_values_own_size():
    exact = torch.linspace(1, 2, 2000, dtype=torch.float64) * 1e-5
    eager, half_wrong = exact.float(), (exact * 1.5).float()
    assert beside(eager, half_wrong, exact)["same"] is True, "torch's own: below 1e-4 all is close"
    assert beside(eager, half_wrong, exact, least=0.0)["same"] is False
    assert beside(eager, half_wrong, exact, least=1.0)["same"] is True, "the roundings of 1"
    assert beside(eager, (exact * (1 + 1e-6)).float(), exact, least=0.0)["same"] is True


def test_whole_numbers_are_equal_but_for_those_that_a_rounding_moves():
    eager = torch.arange(1000)
    other = eager.clone()
    other[:6] += 1
    assert beside(eager, other, flips=0)["same"] is False
    assert beside(eager, other, flips=2)["same"] is True
    assert beside([5], [6], flips=0)["same"] is False


def test_a_number_read_from_a_tensor_may_be_rounded():
    assert agreement(torch, 0.1234567, 0.1234568, None)["same"] is True
    assert agreement(torch, 0.12, 0.13, None, least=0.0)["same"] is False
