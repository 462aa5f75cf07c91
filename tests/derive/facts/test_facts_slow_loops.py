"""What generated C++ kernels do slowly and what of a group's loss it explains, on made rows."""

import pytest

from traceview.derive.facts.slow_fusions import slow_fusions
from traceview.derive.facts.slow_loops import slow_loops
from traceview.tables import Tables, from_rows

INT = "static_cast<int64_t>"
HEAD = {"pass": "cold", "group_id": 0, "clock": "host"}
KERNEL = {**HEAD, "stance": "compiled", "category": "generated_pointwise", "name": "cpp_fused_0"}


def loop(body, step=1):
    head = f"for(int64_t x0={INT}(0L); x0<{INT}(1024L); x0+={INT}({step}L))"
    return f"{head}\n{{\n{body}\n}}"


RANDOM = loop("auto tmp1 = randn_cpu(tmp0, x0);")
#: Twice the same value: one loop sums it, one stores it.
AGAIN = "\n".join(
    loop(f"auto tmp0 = in_ptr0[{INT}(x0)];\nauto tmp1 = std::{name}(tmp0);")
    for name in ("pow", "pow")
)


def facts(source, eager, *, compiled_ms=10.0, step_ms=20.0, clock="host", limits=()):
    """Rows of both tables for a kernel of ``compiled_ms``; ``eager``: operator → ms, line 7."""
    eager_ms = sum(eager.values())
    operators = [
        {**HEAD, "stance": "eager", "category": "elementwise", "name": name, "count": 1.0}
        | {"ms": ms, "file": "/u/a.py", "line": 7}
        for name, ms in eager.items()
    ]
    part = {"pass": "cold", "effect": "fusion", "group_id": 0, "ms": compiled_ms - eager_ms}
    part |= {"eager_ms": eager_ms, "compiled_ms": compiled_ms}
    lines = ["/u/a.py:9", "/u/a.py:7"]
    generated = {"pass": "cold", "kernel_name": "cpp_fused_0", "source_code": source}
    given = {
        "matched_kernels": [
            {**KERNEL, "count": 1.0, "ms": compiled_ms, "clock": clock},
            *operators,
        ],
        "kernel_limits": [
            {"stance": "compiled", "name": "cpp_fused_0", "ms": compiled_ms, **each}
            for each in limits
        ],
        "waterfall_rows": [part],
        "generated_kernels": [{**generated, "user_lines": lines}],
        "speedups": [{"pass": "cold", "compiled_ms": step_ms}],
    }
    tables = Tables({name: from_rows(name, rows) for name, rows in given.items()})
    tables.put("slow_loops", slow_loops(tables))
    return tables["slow_loops"].to_dicts(), slow_fusions(tables).to_dicts()


def test_random_numbers_however_long_they_take():
    (row,), (fusion,) = facts(RANDOM, {"aten::normal_": 1.0})
    assert (row["why"], row["slower_ms"]) == ("random", pytest.approx(9.0))
    assert row["drawn_ms"] == pytest.approx(9.0)
    assert row["user_lines"] == ["/u/a.py:7", "/u/a.py:9"]  # where the eager operator stands
    assert (fusion["slower_ms"], fusion["explained_ms"]) == (9.0, pytest.approx(9.0))


def test_what_is_of_no_weight_in_its_kernel_explains_little():
    more = "\n".join(f"auto tmp{n} = tmp0 + tmp0;" for n in range(2, 1352))
    (row,), (fusion,) = facts(f"{loop(more)}\n{RANDOM}", {"aten::normal_": 1.0})
    # A normal number counts as 150 instructions, next to 1350.
    assert (row["slower_ms"], row["drawn_ms"]) == (pytest.approx(1.0), pytest.approx(0.0))
    assert (fusion["explained_ms"], fusion["slower_ms"]) == (pytest.approx(1.0), 9.0)
    assert fusion["single"] == 1.0


def test_once_more_costs_no_more_than_the_eager_operator():
    rows, _ = facts(AGAIN, {"aten::pow": 0.125, "aten::add": 2.0})
    again, single = sorted(rows, key=lambda row: row["why"], reverse=True)
    assert (again["why"], again["evaluations"], again["distinct"]) == ("recomputed", 2048, 1024)
    assert again["slower_ms"] == 8 * 0.125
    # What is computed again is not one element at a time for another reason: 20 of 42 instructions.
    assert single["slower_ms"] == pytest.approx(10.0 * 20 / 42)


def test_what_reads_at_calculated_places_is_named_with_its_line():
    body = f"auto tmp0 = in_ptr0[{INT}(tmp5)];\nauto tmp1 = std::tanh(tmp0);"
    eager = {"aten::tanh": 0.5, "aten::grid_sampler_2d": 1.0}
    for operators, reader in ((eager, "grid_sampler_2d"), ({"aten::tanh": 0.5}, None)):
        rows, _ = facts(loop(body), operators)
        assert [row["reader"] for row in rows if row["why"] == "loaded_index"] == [reader]


def test_few_values_in_eager_say_little_of_many_in_a_kernel():
    small = "auto tmp0 = in_ptr0[static_cast<int64_t>(0L)];\nauto tmp1 = tmp0.cos();"
    sample = "auto tmp2 = in_ptr1[static_cast<int64_t>(tmp9)];\n" + "auto tmp3 = tmp2;\n" * 999
    store = f"out_ptr0[{INT}(x0)] = tmp3;"
    eager = {"aten::cos": 0.5, "aten::grid_sampler_2d": 1.0}
    source = f"{loop(small, 16)}\n{loop(f'{sample}{store}')}"
    (row,), (fusion,) = facts(source, eager)
    assert (row["why"], row["evaluations"], row["distinct"]) == ("recomputed", 1024, 1)
    # 128 vectors of 200 instructions at most, next to 1024 turns of 1001, in 10 ms.
    assert row["slower_ms"] == pytest.approx(0.244, rel=0.02)
    assert fusion["explained_ms"] == row["slower_ms"]
    assert (fusion["reader"], fusion["reader_line"]) == ("grid_sampler_2d", "/u/a.py:7")
    assert fusion["looked_up"] == 1024  # and no place that is written
    assert fusion["looking_up"] > 0.99


def test_no_kernel_takes_more_than_the_timed_step():
    _, (fusion,) = facts(RANDOM, {"aten::normal_": 1.0}, step_ms=6.0)
    assert (fusion["compiled_ms"], fusion["slower_ms"]) == (6.0, 5.0)


def test_a_kernel_that_is_faster_than_eager_loses_nothing():
    (row,), fusions = facts(RANDOM, {"aten::normal_": 12.0})
    assert (row["slower_ms"], fusions) == (0.0, [])
    assert row["repeated_ms"] is None


def test_random_numbers_are_priced_where_the_kernel_is_faster_than_eager_too():
    (row,), _ = facts(RANDOM, {"aten::normal_": 1.0, "aten::add": 20.0})
    assert (row["slower_ms"], row["drawn_ms"]) == (0.0, pytest.approx(9.0))


def test_what_a_kernel_repeats_is_priced_where_it_is_faster_than_eager_too():
    rows, _ = facts(AGAIN, {"aten::pow": 1.0, "aten::add": 20.0})
    (again,) = (row for row in rows if row["why"] == "recomputed")
    # One of the two evaluations: 20 of 42 instructions.
    assert (again["slower_ms"], again["repeated_ms"]) == (0.0, pytest.approx(10.0 * 20 / 42))


TRITON = """
@triton.jit
def triton_poi_fused_lgamma_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 4096
    x0 = (xindex % 16)
    x1 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tmp1 = libdevice.lgamma(tmp0)
    tl.store(out_ptr0 + (x1), tmp1, None)
"""


@pytest.mark.parametrize(
    ("limits", "store", "repeated_ms"),
    [
        ([], "tl.store(out_ptr0 +", None),  # behind memory, for all that is known
        ([{"bound": "memory", "floor_ms": 9.0}], "tl.store(out_ptr0 +", None),
        ([{"bound": "neither", "floor_ms": 7.0}], "tl.store(out_ptr0 +", 3.0),
        ([{"bound": "neither", "floor_ms": 7.0}], "tl.atomic_add(out_ptr0 +", None),
    ],
)
def test_on_a_device_what_is_repeated_costs_what_does_not_hide(limits, store, repeated_ms):
    source = TRITON.replace("tl.store(out_ptr0 +", store)
    rows, _ = facts(source, {"aten::lgamma": 12.0}, clock="device", limits=limits)
    (again,) = (row for row in rows if row["why"] == "recomputed")
    assert again["repeated_ms"] == (repeated_ms and pytest.approx(repeated_ms))
