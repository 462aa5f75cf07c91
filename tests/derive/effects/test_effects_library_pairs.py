"""The same work of a library in both stances, and what differs about it."""

from effect_steps import account, kernel

from traceview.derive.effects.kernels import timed_kernels
from traceview.derive.effects.library_pairs import OwnKernels, library_pairs


def pairs(*kernels, groups=(), generated=()):
    busy = {(row["stance"], row["category"]): 0.0 for row in kernels}
    for row in kernels:
        busy[row["stance"], row["category"]] += row["ms"]
    columns = ("file", "line", "how", "compile_id", "aot_id", "ops", "source_nodes", "cpu_op")
    columns += ("shape", "dtype", "layout")
    rows = [dict.fromkeys(columns) | row for row in kernels]
    timed = timed_kernels(rows, [account(*key, ms) for key, ms in busy.items()])
    return library_pairs(timed, OwnKernels.of(groups, generated))


def product(stance, name, ms, shape="16x128, 128", **more):
    compiled = {"compile_id": "0/0", "aot_id": "0_inference"} if stance == "compiled" else {}
    work = {"cpu_op": "aten::mm", "shape": shape, "dtype": "float32", "line": 7}
    layout = {"layout": "contiguous, transposed"}
    return kernel(0, stance, name, ms, "gemm", 72.0, **compiled, **{**work, **layout, **more})


def test_another_kernel_for_the_same_product():
    (found,) = pairs(product("eager", "small_n", 0.154), product("compiled", "splitK", 3.58))
    assert (found["kind"], found["line"], found["differs"]) == ("gemm", 7, ["kernel"])
    assert (found["eager_ms"], found["compiled_ms"]) == (0.154, 3.58)
    assert (found["eager_kernels"], found["compiled_kernels"]) == (["small_n"], ["splitK"])


def test_the_same_kernel_differs_in_nothing():
    (found,) = pairs(product("eager", "gemm", 1.0), product("compiled", "gemm", 1.5))
    assert found["differs"] == []


def test_shapes_are_paired_apart_and_the_one_that_is_left_is_padded():
    found = pairs(
        product("eager", "a", 1.0),
        product("compiled", "a", 1.0),
        product("eager", "b", 1.0, shape="30x127, 64"),
        product("compiled", "b", 2.0, shape="32x128, 64"),
    )
    assert [(row["shape"], row["compiled_shape"], row["differs"]) for row in found] == [
        ("30x127, 64", "32x128, 64", ["padded"]),
        ("16x128, 128", None, []),
    ]


def test_another_operator_and_layout():
    (found,) = pairs(
        product("eager", "gemm", 1.0, cpu_op="aten::addmm"),
        product("compiled", "gemm", 1.5, layout="contiguous, contiguous"),
    )
    assert found["differs"] == ["operator", "layout"]


def test_loops_in_the_place_of_a_product():
    loops = kernel(0, "compiled", "cpp_fused_bmm_0", 3.6, "generated_reduction", compile_id="0/0")
    (found,) = pairs(product("eager", "aten::bmm", 1.5), loops)
    assert (found["differs"], found["compiled_kernels"]) == (["generated"], ["cpp_fused_bmm_0"])


def test_a_short_loop_next_to_other_operators_is_not_in_the_place_of_a_product():
    softmax = kernel(0, "compiled", "softmax", 3.4, "reduction", compile_id="0/0")
    loops = kernel(0, "compiled", "triton_red_0", 0.02, "generated_reduction", compile_id="0/0")
    (found,) = pairs(product("eager", "aten::bmm", 0.1), softmax, loops)
    assert found["differs"] == ["operator", "kernel"]


def own(stance, ms, name="unit_rows", **more):
    """The user's Triton kernel, as it is launched: by no operator, or by generated code."""
    if stance == "compiled":
        more = {"compile_id": "0/0", "line": 33, "cpu_op": f"{name}_0", **more}
    return kernel(0, stance, name, ms, "user_kernel", 2.0, **more)


def generated(signature, name="unit_rows_0"):
    source = f"triton_meta={{'signature': {{{signature}}}}}\n@triton.jit\ndef unit_rows(x_ptr):"
    return {"category": "user_triton", "kernel_name": name, "source_code": source}


def launched(stance, programs, threads=128, name="unit_rows"):
    row = {"category": "user_kernel", "programs": programs, "threads": threads}
    return {**row, "stance": stance, "name": name}


def test_a_triton_kernel_of_the_users_is_paired_by_its_name():
    other = [own("eager", 1.0, "scan"), own("compiled", 1.1, "scan")]
    slow, same = pairs(
        own("eager", 4.4), own("compiled", 8.8), *other,
        generated=[
            generated("'x_ptr': '*fp32', 'eps': 'fp64'"),
            generated("'x_ptr': '*fp64', 'eps': 'fp64', 'n': 'i32'", "unit_rows_1"),
            generated("'x_ptr': '*fp64', 'n': 'i32'", "scan_0"),
        ],
    )  # fmt: skip
    assert (slow["kind"], slow["line"], slow["shape"]) == ("user_kernel", 33, None)
    assert (slow["eager_ms"], slow["compiled_ms"]) == (4.4, 8.8)
    assert (slow["eager_count"], slow["compiled_count"]) == (2.0, 2.0)
    assert (slow["differs"], slow["float64_arguments"]) == (["float64"], ["eps"])
    assert (same["compiled_kernels"], same["differs"]) == (["scan"], [])
    assert same["float64_arguments"] == []


def test_another_launch_of_a_triton_kernel():
    known = [launched("eager", 4, 256), launched("compiled", 4)]
    (found,) = pairs(own("eager", 4.4), own("compiled", 8.8), groups=known)
    assert found["differs"] == ["launch"]
    for unlike in (launched("compiled", 4, 256), launched("compiled", None, None)):
        (found,) = pairs(own("eager", 4.4), own("compiled", 8.8), groups=[known[0], unlike])
        assert found["differs"] == []


def test_a_custom_operators_kernels_are_paired_by_the_operator():
    (found,) = pairs(
        own("eager", 1.0, cpu_op="my::norm", dtype="float32"),
        own("compiled", 2.0, cpu_op="my::norm", dtype="float64"),
    )
    assert (found["kind"], found["differs"]) == ("my::norm", ["dtype"])


def test_a_triton_operator_is_an_operator_in_eager_only():
    (found,) = pairs(own("eager", 1.0, cpu_op="my::norm"), own("compiled", 2.0))
    assert (found["kind"], found["eager_ms"]) == ("user_kernel", 1.0)


def put(stance, operator, ms, line=9):
    compiled = {"compile_id": "0/0"} if stance == "compiled" else {}
    where = {"cpu_op": operator, "file": "/job/train.py", "line": line}
    return kernel(0, stance, operator, ms, "indexing", **where, **compiled)


def test_another_operator_for_the_same_scatter():
    (found,) = pairs(
        put("eager", "aten::index_add_", 0.4), put("compiled", "aten::_index_put_impl_", 3.8)
    )
    assert (found["kind"], found["line"]) == ("aten::index_add_", 9)
    assert found["differs"] == ["operator", "kernel"]
    assert found["ms"] == 3.4
    elsewhere = put("compiled", "aten::_index_put_impl_", 3.8, line=10)
    assert pairs(put("eager", "aten::index_add_", 0.4), elsewhere) == []
