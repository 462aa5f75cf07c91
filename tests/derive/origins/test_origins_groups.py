"""Keys of kernels, and the sets that share them."""

import pytest

from traceview.derive.origins.groups import (
    by_operator,
    by_shape,
    by_shape_alone,
    components,
    group_row,
    keys,
    lost_keys,
)

PLAIN = {
    "stance": "eager", "name": "k", "category": "elementwise", "kind": "memory",
    "how": "line", "is_backward": False, "graph_key": None, "region": "0", "word": "add",
    "ops": ["aten.add"], "is_cast": False, "count": 2.0, "ms": 0.5,
    "clock": "device", "compile_id": None, "shape": None, "top": "add", "holder": None,
    "lines": ["/s.py:3"],
}  # fmt: skip
FUSED = PLAIN | {
    "stance": "compiled", "name": "triton_poi_fused_add_0", "category": "generated_pointwise",
    "graph_key": "f1", "compile_id": "0/0",
    "how": "provenance", "count": 1.0, "ms": 0.25, "lines": ["/s.py:3", "/s.py:4"],
}  # fmt: skip
MM = FUSED | {"name": "nvjet", "category": "gemm", "kind": "gemm", "ops": ["aten.mm"]}


def test_a_generated_kernel_has_a_key_for_each_of_its_lines():
    assert keys(PLAIN) == [("line", "/s.py:3", "memory", "forward")]
    assert keys(FUSED) == [
        ("line", "/s.py:3", "memory", "forward"),
        ("line", "/s.py:4", "memory", "forward"),
    ]


def test_backward_and_forward_are_told_apart():
    assert keys(PLAIN | {"is_backward": True})[0][-1] == "backward"


def kinds(row):
    return {key[2] for key in keys(row)}


def test_the_kind_of_work_is_what_it_holds():
    assert kinds(MM) == {"gemm"}
    bias = FUSED | {"ops": ["aten.addmm", "aten.relu"]}
    assert kinds(bias) == {"memory", "gemm"}  # in eager the product itself adds its bias
    template = FUSED | {"category": "generated_template", "name": "triton_tem_fused_0", "ops": []}
    assert kinds(template) == {"memory", "gemm"}
    assert kinds(template | {"name": "triton_tem_fused_flex_attention_0"}) == {
        "memory", "attention",
    }  # fmt: skip


def test_eager_operators_without_a_line_join_by_name_inside_regions_only():
    inside = keys(PLAIN | {"lines": []})
    outside = keys(PLAIN | {"lines": [], "region": None})
    assert inside != outside
    assert inside[0] in keys(FUSED, set(inside))
    assert not set(outside) & set(keys(FUSED, set(outside)))


def test_a_line_that_one_stance_lost_is_made_up_for_by_the_operators_name():
    here, there = PLAIN | {"region": None}, PLAIN | {"region": None, "stance": "compiled"}
    rows = [here | {"lines": []}, there, there | {"word": "mul"}]
    lost = lost_keys(rows)
    keyed = [keys(row, lost[row["stance"]]) for row in rows]
    numbers = components(keyed)
    assert numbers[0] == numbers[1]
    assert lost["eager"] == set()
    assert keys(here, lost["eager"]) == [("line", "/s.py:3", "memory", "forward")]


def test_what_a_graphs_call_does_beside_its_code_is_alone():
    assert keys(FUSED | {"how": None, "lines": []}) == []


def test_a_librarys_keys_are_told_apart_by_shape_where_both_stances_have_the_same():
    eager = [PLAIN | {"kind": "gemm", "shape": shape} for shape in ("8x8, 4", "8x9, 4")]
    compiled = [MM | {"lines": ["/s.py:3"], "shape": row["shape"]} for row in eager]

    def numbers(*rows):
        return components(by_shape(rows, [keys(row) for row in rows]))

    a, b, c, d = numbers(*eager, *compiled)
    assert (a, b) == (c, d)
    assert a != b
    assert len(set(numbers(*eager, *compiled[:1]))) == 1
    padded = compiled[1] | {"shape": "8x16, 4"}
    assert len(set(numbers(*eager, compiled[0], padded))) == 1
    assert len(set(numbers(*eager, compiled[0], compiled[1] | {"shape": None}))) == 1
    bias = FUSED | {"ops": ["aten.addmm"], "lines": ["/s.py:3"]}  # belongs to both
    assert len(set(numbers(*eager, *compiled, bias))) == 1


def test_a_product_that_a_pass_made_is_known_by_its_shape():
    eager = PLAIN | {"kind": "gemm", "shape": "8x8, 4"}
    made = MM | {"lines": [], "shape": "8x8, 4"}
    other = made | {"is_backward": True}
    rows = [eager, made, other, made | {"shape": "8x9, 4"}]
    a, b, c, d = components(by_shape_alone(rows, [keys(row) for row in rows]))
    assert a == b
    assert len({a, c, d}) == 3
    placed = MM | {"lines": ["/s.py:9"], "shape": "8x8, 4"}  # of another line: not the same
    rows = [eager, placed]
    assert len(set(components(by_shape_alone(rows, [keys(row) for row in rows])))) == 2


def plain(op, top=None, holder=None):
    return PLAIN | {"ops": [f"aten.{op}"], "top": top or op, "holder": holder}


def fused(*ops):
    return FUSED | {"lines": ["/s.py:3"], "ops": [f"aten.{op}" for op in ops]}


def sets(*rows):
    """Which rows belong together, as numbers in order of first appearance."""
    found = components(by_operator(rows, [keys(row) for row in rows]))
    seen = list(dict.fromkeys(found))
    return [seen.index(number) for number in found]


def test_operators_of_one_line_are_told_apart():
    gelu, norm = plain("gelu"), plain("native_layer_norm", top="layer_norm")
    assert sets(gelu, norm, fused("view", "gelu"), fused("native_layer_norm")) == [0, 1, 0, 1]
    assert sets(gelu, norm, fused("gelu", "native_layer_norm")) == [0, 0, 0]


def test_a_cast_is_known_by_the_operator_that_copies():
    cast = plain("copy_", top="linear", holder="_to_copy")
    assert sets(cast, plain("gelu"), fused("_to_copy"), fused("gelu", "view")) == [0, 1, 0, 1]


def test_a_line_is_whole_where_a_kernel_would_be_without_a_partner():
    gelu, norm = plain("gelu"), plain("native_layer_norm", top="layer_norm")
    decomposed = fused("mul", "erf", "gelu")
    assert sets(gelu, norm, decomposed, fused("gelu")) == [0, 0, 0, 0]
    assert sets(gelu, norm, fused("gelu", "native_layer_norm"), fused("mul")) == [0, 0, 0, 0]


def test_arranging_operators_tell_nothing_apart():
    assert sets(plain("copy_", top="reshape", holder="clone"), fused("view", "clone")) == [0, 0]
    assert sets(plain("gelu", top="view"), fused("view")) == [0, 0]


def test_components_are_joined_by_any_shared_key_and_by_nothing_else():
    a, b, c = ("a",), ("b",), ("c",)
    numbers = components([[a], [b], [a, b], [c], [], []])
    assert numbers[0] == numbers[1] == numbers[2]
    assert len({numbers[0], *numbers[3:]}) == 4


def test_a_group_adds_up_both_sides():
    cast = PLAIN | {"is_cast": True, "ms": 0.125, "how": "operator"}
    row = group_row([PLAIN, cast, FUSED])
    assert (row["kind"], row["matched"], row["how"]) == ("fused", True, "operator")
    assert (row["eager_kernels"], row["eager_ms"], row["eager_casts_ms"]) == (4.0, 0.625, 0.125)
    assert (row["compiled_kernels"], row["compiled_ms"]) == (1.0, 0.25)
    assert row["lines"] == ["/s.py:3", "/s.py:4"]
    assert row["compile_ids"] == ["0/0"]


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ([PLAIN, MM], "library"),
        ([PLAIN, MM, FUSED], "fused"),
        ([PLAIN, PLAIN | {"stance": "compiled"}], "same"),
        ([PLAIN], "eager_only"),
        ([FUSED], "compiled_only"),
    ],
)
def test_kinds_of_groups(members, kind):
    row = group_row(members)
    assert (row["kind"], row["matched"]) == (kind, "only" not in kind)


def test_a_time_that_is_not_known_is_not_zero():
    assert group_row([PLAIN | {"ms": None}, PLAIN])["eager_ms"] is None
