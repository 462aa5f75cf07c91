"""The tree of guards that torch writes for each compile, and what Triton says of its kernels."""

import json
from textwrap import dedent

import polars as pl
from structured_log_tools import artifact, at, kinds_of, read, record, recorded

TREE = dedent("""
    TREE_GUARD_MANAGER:
    +- RootGuardManager
    | +- GLOBAL_STATE: ___check_global_state() against {"grad_mode":true}
    | +- TORCH_FUNCTION_MODE_STACK: ___check_torch_function_mode_stack()
    | +- GuardManager: source=L['x'], accessed_by=FrameLocals(key='x'), type=<class 'T'>
    | | +- TENSOR_MATCH: check_tensor(L['x'], Tensor)  # y = x + 1  # me/train.py:7 in step
    | | +- NO_TENSOR_ALIASING
    | +- DictGuardManager: source=L['d'], accessed_by=FrameLocalsGuardAccessor(key='d')
    | | +- KeyValueManager pair at index=0
    | | | +- KeyManager: GuardManager: source=list(dict.keys(L['d']))[0], type=<class 'str'>
    | | | | +- EQUALS_MATCH: list(dict.keys(L['d']))[0] == 'k'  # d['k']  # me/train.py:8 in step
    | | | +- ValueManager: GuardManager: source=L['d']['k'], type=<class 'int'>
    | | | | +- EQUALS_MATCH: L['d']['k'] == 3
    | | +- LENGTH_CHECK: len(L['d']) == 1
    +- LAMBDA_GUARD: G['a'] is G['b']  # nn/modules/linear.py:134 in forward

    Guard latency = 119.90 us""")


def test_every_leaf_is_a_guard_on_what_its_manager_reads(tmp_path):
    tables, damage = read(tmp_path, record("dynamo_cpp_guards_str", {}, payload=TREE, **at(0)))
    rows = tables["guards"].select("kind", "source_name", "guard", "file", "line").rows()
    keys = "list(dict.keys(L['d']))[0]"
    assert rows == [
        ("GLOBAL_STATE", None, '___check_global_state() against {"grad_mode":true}', None, None),
        ("TORCH_FUNCTION_MODE_STACK", None, "___check_torch_function_mode_stack()", None, None),
        ("TENSOR_MATCH", "L['x']", "check_tensor(L['x'], Tensor)", "me/train.py", 7),
        ("NO_TENSOR_ALIASING", "L['x']", None, None, None),
        ("EQUALS_MATCH", keys, f"{keys} == 'k'", "me/train.py", 8),
        ("EQUALS_MATCH", "L['d']['k']", "L['d']['k'] == 3", None, None),
        ("LENGTH_CHECK", "L['d']", "len(L['d']) == 1", None, None),
        ("LAMBDA_GUARD", None, "G['a'] is G['b']", "nn/modules/linear.py", 134),
    ]
    assert tables["guards"]["compile_id"].unique().to_list() == ["0/0"]
    assert kinds_of(damage) == {}


def test_a_tree_of_another_form_gives_no_guards_and_no_error(tmp_path):
    for text in ("", "+- ", "| | | +- X\n+- lower: case\n\x00", "| +- : \n" * 50):
        tables, _ = read(tmp_path, record("dynamo_cpp_guards_str", {}, payload=text, **at(0)))
        assert tables["guards"].height <= 1


def test_every_compile_with_guards_has_its_tree(tmp_path):
    tables, _ = read(tmp_path, recorded("guards"))
    counted = tables["guards"].group_by("compile_key").len()
    known = tables["compiles"].filter(pl.col("guard_count") > 0)
    assert set(counted["compile_key"]) == set(known["compile_key"])
    assert counted["len"].min() > 4


def test_tritons_own_time_is_kept_beside_the_phases(tmp_path):
    info = {
        "triton_poi_0": {"compile_time_us": 1122832},
        "bad": 3,
        "worse": {"compile_time_us": "x"},
        "less": {"compile_time_us": -1},
    }
    tables, damage = read(
        tmp_path, artifact("triton_kernel_info", json.dumps(info), "json", **at(0))
    )
    row = tables["compile_phases"].row(0, named=True)
    assert tables["compile_phases"].height == 1
    assert (row["name"], row["duration_us"]) == ("triton: triton_poi_0", 1122832.0)
    assert (row["started_us"], row["parent_id"], row["aside"]) == (None, None, True)
    assert kinds_of(damage) == {}
