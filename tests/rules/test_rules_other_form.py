"""Which other way is advised, for which calls, and when an inverse is one."""

import pytest

from traceview.rules import ind_other_form

POOL = {
    **{"op": "aten::avg_pool2d", "shape": "1x8x64x64", "settings": "[15, 15]"},
    **{"dtype": "float32", "count": 2.0, "backward": False, "base": 1000.0, "clock": "host"},
    **{"own": True, "fused": False},
}
INVERSE = POOL | {"op": "aten::linalg_inv_ex", "shape": "64x64", "settings": ""}


def ways(**values):
    names = {"sums": "differences of running sums", "both": "one dimension at a time"}
    return [POOL | {"way": names[name], "value": us} for name, us in values.items()]


def found(make, trials, op="aten.avg_pool2d", graphs=(), **kernel):
    run = {"compile_id": "0/0", "stance": "compiled", "category": "other", "name": op}
    tables = make(
        form_trials=trials,
        graphs=list(graphs),
        matched_kernels=[
            {**run, "ops": [op], "ms": 1.5, "file": "/srv/a.py", "line": 3, **kernel},
            {**run, "ops": [f"{op}_backward"], "ms": 0.5, "file": "/srv/a.py", "line": 3, **kernel},
        ],
        speedups=[{"eager_ms": 4.0, "compiled_ms": 4.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 4.0}],
    )
    return list(ind_other_form.check(tables))


def test_the_fastest_way_is_advised(make):
    (finding,) = found(make, ways(both=400.0, sums=100.0))
    assert finding.cost.ms_per_step == pytest.approx(1.8)  # nine tenths of two calls
    assert finding.title == (
        "avg_pool2d at a.py:3: differences of running sums would save 1.80 ms, 45 % of the step"
    )
    assert "running sums" in finding.what_to_do
    assert finding.evidence[0].text == (
        "aten::avg_pool2d of 1x8x64x64 ([15, 15]): 2.00 ms as it is, 0.200 ms as differences of "
        "running sums"
    )


@pytest.mark.parametrize(
    ("values", "kernel"),
    [
        ({"sums": 900.0}, {}),  # hardly faster
        ({"sums": 100.0}, {"category": "generated_reduction"}),  # compiled code has its own
        ({"sums": 100.0}, {"ms": 0.01}),  # no part of the step
    ],
)
def test_no_way_is_advised(make, values, kernel):
    assert found(make, ways(**values), **kernel) == []


def test_generated_code_is_compared_with_what_it_computes(make):
    trial = POOL | {"op": "aten::std", "own": False, "way": "two passes", "value": 300.0}
    assert found(make, [trial], "aten.var") == []  # no generated kernel
    (finding,) = found(make, [trial], "aten.var", category="generated_reduction", ms=3.0)
    assert "has a kernel of its own for std" in finding.explanation
    assert finding.cost.ms_per_step == pytest.approx(1.4)  # seven tenths of two calls
    slow = trial | {"base": 4000.0}  # by itself slower than the kernel that it is fused into
    (finding,) = found(make, [slow], "aten.var", category="generated_reduction", ms=1.0)
    assert finding.cost.ms_per_step == pytest.approx(1.0 - 0.6)


def graph(columns, reader="mm"):
    few = f'"f32[64, {columns}][{columns}, 1]cpu"'
    text = f"""
    def forward(self, arg0_1: "f32[64, 64][64, 1]cpu", arg1_1: {few}):
        inv = torch.ops.aten.linalg_inv_ex.default(arg0_1)
        getitem: "f32[64, 64][1, 64]cpu" = inv[0]
        mm: {few} = torch.ops.aten.{reader}.default(getitem, arg1_1)
        return (mm,)
"""
    return {"kind": "post_grad", "text": text}


@pytest.mark.parametrize(
    ("graphs", "advised"),
    [
        ([graph(4)], True),
        ([graph(64)], False),  # as many columns as the inverse has
        ([graph(4, "add")], False),
        ([graph(4), graph(4, "add")], False),
        ([], False),
    ],
)
def test_a_solve_is_advised_where_inverses_are_only_multiplied(make, graphs, advised):
    trials = [INVERSE | {"way": "a solve", "value": 300.0}]
    assert bool(found(make, trials, "aten.linalg_inv_ex", graphs)) == advised


def scatter(index):
    text = f"""
    def forward(self, arg0_1: "f32[40, 4][4, 1]cpu", arg1_1: "i64[40][1]cpu", arg2_1: "f32[9, 4][4, 1]cpu", arg3_1: "i64[40, 4][4, 1]cpu"):
        unsqueeze: "i64[40, 1][1, 1]cpu" = torch.ops.aten.unsqueeze.default(arg1_1, 1)
        repeat: "i64[40, 4][4, 1]cpu" = torch.ops.aten.repeat.default(unsqueeze, [1, 4])
        scatter_add: "f32[9, 4][4, 1]cpu" = torch.ops.aten.scatter_add.default(arg2_1, 0, {index}, arg0_1)
        return (scatter_add,)
"""  # noqa: E501 - as torch writes it
    return {"kind": "post_grad", "text": text}


@pytest.mark.parametrize(("index", "advised"), [("repeat", True), ("arg3_1", False)])
def test_a_view_of_the_index_is_advised_where_it_is_a_copy_of_a_column(make, index, advised):
    trials = [POOL | {"op": "aten::scatter_add", "way": "an expanded index", "value": 300.0}]
    assert bool(found(make, trials, "aten.scatter_add", [scatter(index)])) == advised
