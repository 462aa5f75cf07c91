"""The step's own shapes, read from a trace and timed both ways."""

import gzip
import json
from types import SimpleNamespace

import pytest

from traceview.collectors.child import shape_trials, shape_works
from traceview.collectors.child.masks import Masks


def event(name, dims, strides, concrete=(), kind="float"):
    return {
        "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1.0, "dur": 1.0,
        "args": {
            "External id": 1, "Concrete Inputs": list(concrete),
            "Input type": [kind] * len(dims), "Input Strides": strides, "Input Dims": dims,
        },
    }  # fmt: skip


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A machine that stands still for seconds reaches no time limit."""
    monkeypatch.setattr(shape_trials, "BUDGET_S", 60.0)


@pytest.fixture
def raw(tmp_path):
    mm = event("aten::mm", [[8, 16], [16, 32]], [[16, 1], [1, 16]])
    settings = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    dims, strides = [[2, 4, 8, 8], [4, 4, 3, 3]], [[256, 1, 32, 4], [36, 1, 12, 4]]
    convolution = event("aten::convolution", dims, strides, settings)
    marks = [{"ph": "X", "name": f"traceview step {n}", "args": {}} for n in (1, 2)]
    text = json.dumps({"traceEvents": [*marks, mm, mm, convolution]}, indent=2)
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "compiled-7-2.json.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_the_heaviest_shapes_come_first_with_their_calls_in_a_step(raw):
    found = shape_works.heaviest(raw / "profile" / "compiled-7-2.json.gz")
    assert [(work[0], count) for work, count in found.items()] == [
        ("aten::convolution", 0.5),
        ("aten::mm", 1.0),
    ]


@pytest.mark.parametrize("name", ["compiled-7.json.gz", "compiled-7-of-1-3.json.gz"])
def test_the_last_window_of_the_process_is_read(raw, name):
    folder = raw / "profile"
    (folder / "compiled-7-2.json.gz").rename(folder / name)
    for other in ("compiled-7-lines.json.gz", "compiled-71.json.gz", "compiled-7-lines-2.json.gz"):
        (folder / other).write_bytes(b"")
    assert dict(shape_works.last_traces(folder, 7)) == {"compiled": folder / name}


def transform(name, size, values):
    kind = "float" if name == "aten::_fft_r2c" else "c10::complex<float>"
    return event(name, [size, [], [], []], [[size[-1], 1], [], [], []], values, kind)


@pytest.mark.parametrize(
    ("name", "size", "values", "shape", "longer"),
    [
        ("aten::_fft_r2c", [2, 509], ["", "[1]", "0", "True"], "2x509", "length 512"),
        ("aten::_fft_c2r", [2, 255], ["", "[1]", "2", "509"], "2x509", "length 512"),
        ("aten::_fft_c2c", [37, 34], ["", "[0, 1]", "0", "True"], "37x34", "length 40x36"),
        ("aten::_fft_r2c", [2, 26 * 7], ["", "[1]", "0", "True"], None, None),
    ],
)
def test_a_transform_of_a_slow_length_is_timed_with_a_fast_one(
    tmp_path, name, size, values, shape, longer
):
    torch = pytest.importorskip("torch")
    text = json.dumps({"traceEvents": [transform(name, size, values)]}, indent=2)
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "compiled-7.json.gz").write_bytes(gzip.compress(text.encode()))
    written = []
    recorder = SimpleNamespace(
        raw=tmp_path, pid=7, note=None, write=lambda kind, **fields: written.append(fields)
    )
    shape_trials.write_shape_trials(torch, recorder, Masks(torch), device=False)
    assert [(each["way"], each["shape"]) for each in written] == (
        [("as it is", shape), (longer, shape)] if longer else []
    )
    assert all(each["value"] > 0 for each in written)


def test_a_convolution_is_timed_in_another_memory_format(raw):
    torch = pytest.importorskip("torch")
    written = []
    recorder = SimpleNamespace(
        raw=raw, pid=7, note=None, write=lambda kind, **fields: written.append((kind, fields))
    )
    random = torch.get_rng_state()
    shape_trials.write_shape_trials(torch, recorder, Masks(torch), device=False)
    mine = [fields for _, fields in written if fields["op"] == "aten::convolution"]
    assert {"as it is", "contiguous"} <= {fields["way"] for fields in mine}
    assert all(fields["value"] > 0 and fields["count"] == 0.5 for fields in mine)
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("kind", ["c10::Half", "c10::BFloat16"])
def test_a_product_of_16_bits_on_a_cpu_is_timed_in_float32(tmp_path, kind):
    torch = pytest.importorskip("torch")
    mm = event("aten::mm", [[8, 16], [16, 32]], [[16, 1], [1, 16]], kind=kind)
    (tmp_path / "profile").mkdir()
    text = json.dumps({"traceEvents": [mm]}, indent=2)
    (tmp_path / "profile" / "compiled-7-2.json.gz").write_bytes(gzip.compress(text.encode()))
    written = []
    recorder = SimpleNamespace(
        raw=tmp_path, pid=7, note=None, write=lambda kind, **fields: written.append(fields)
    )
    shape_trials.write_shape_trials(torch, recorder, Masks(torch), device=False)
    ways = [fields["way"] for fields in written]
    assert ways[:2] == ["as it is", "float32"]
    assert set(ways[2:]) <= ({"bfloat16"} if kind == "c10::Half" else set())


def test_a_trace_that_is_damaged_has_no_shapes(tmp_path):
    path = tmp_path / "compiled-7.json.gz"
    text = b'"name": "aten::mm", "args": {"Input Dims": [[1, 2], "x"], "Input type": [1]}'
    path.write_bytes(gzip.compress(text))
    assert shape_works.heaviest(path) == {}


@pytest.mark.parametrize(
    ("separate", "mask", "causal", "found"),
    [
        (True, [], "False", [("", 1.0)]),
        (True, [], "True", [("causal", 1.0)]),
        (True, [4, 4], "False", []),
        (False, [], "False", []),
    ],
)
def test_attention_as_separate_operators_is_timed_whole(raw, separate, mask, causal, found):
    sizes, strides = [[2, 4, 8, 16]] * 3, [[512, 128, 16, 1]] * 3
    values = ["", "", "", "", "0.", causal, "", "False"]
    name = "aten::scaled_dot_product_attention"
    attention = event(name, [*sizes, mask, [], []], [*strides, [], [], []], values)
    if separate:
        inner = event("aten::_scaled_dot_product_attention_math", sizes, strides)
        product = event("aten::bmm", [[8, 8, 16], [8, 16, 8]], [[128, 16, 1], [128, 1, 16]])
        events = [attention, inner, product]
    else:
        events = [attention]
    path = raw / "profile" / "eager-7-2.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}, indent=2).encode()))
    works = shape_works.of_eager(path, device=False)
    assert [(work[0], work[4], count) for work, count in works.items()] == [
        (name, settings, count) for settings, count in found
    ]
    for work in works:
        torch = pytest.importorskip("torch")
        act = shape_trials._act(torch, work, device=False)
        q = torch.arange(64.0).reshape(1, 1, 4, 16) / 64
        first = act(q, q, q)[0, 0, 0]
        assert torch.equal(first, q[0, 0, 0]) is (causal == "True")


@pytest.mark.parametrize(
    ("kind", "device", "found"),
    [("float", True, 1), ("float", False, 0), ("c10::BFloat16", True, 0)],
)
def test_attention_in_float32_is_timed_on_a_gpu_next_to_heavier_products(
    tmp_path, kind, device, found
):
    sizes, strides = [[2, 4, 8, 16]] * 3, [[512, 128, 16, 1]] * 3
    values = ["", "", "", "", "0.", "False", "", "False"]
    name = "aten::scaled_dot_product_attention"
    attention = event(name, [*sizes, [], [], []], [*strides, [], [], []], values, kind)
    heavier = [
        event("aten::mm", [[512, n], [n, 512]], [[n, 1], [512, 1]], kind="c10::BFloat16")
        for n in range(512, 512 + shape_works.MOST_SHAPES)
    ]
    path = tmp_path / "eager-7.json.gz"
    text = json.dumps({"traceEvents": [*heavier, attention]}, indent=2)
    path.write_bytes(gzip.compress(text.encode()))
    works = shape_works.of_eager(path, device=device)
    assert [(work[0], work[3]) for work in works] == [(name, "float32")] * found


def test_attention_in_float32_is_timed_with_operands_that_are_cast_before():
    torch = pytest.importorskip("torch")
    name, size, step = "aten::scaled_dot_product_attention", (2, 4, 8, 16), (512, 128, 16, 1)
    work = (name, (size,) * 3, (step,) * 3, "float32", "")
    operands, seen = [torch.ones(size)] * 3, []

    def clock(act):
        seen.append({each.dtype for each in act.args})
        return 1.0

    act = shape_trials._act(torch, work, device=False)
    ways = dict(shape_trials._others(torch, work, act, operands, True, clock))
    ways["bfloat16"]()
    assert seen == [{torch.bfloat16}]


SIZES = [2, 2, 48, 16]


def masked_attention(tmp_path, mask_kind, masks=None):
    """A trace of eager attention with a mask, and what is written for it."""
    torch = pytest.importorskip("torch")
    strides = [[1536, 768, 16, 1]] * 3 + [[48, 1]]
    attention = event(
        "aten::scaled_dot_product_attention",
        [*[SIZES] * 3, [48, 48], [], [], [], []],
        strides,
        ["", "", "", "", "0.", "False", "", "False"],
    )
    attention["args"]["Input type"] = ["float"] * 3 + [mask_kind] + ["Scalar"] * 4
    text = json.dumps({"traceEvents": [{"name": "traceview step 1"}, attention]}, indent=2)
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "eager-7-1.json.gz").write_bytes(gzip.compress(text.encode()))
    written = []
    recorder = SimpleNamespace(
        raw=tmp_path, pid=7, note=None, write=lambda kind, **fields: written.append(fields)
    )
    shape_trials.write_shape_trials(torch, recorder, masks or Masks(torch), device=False)
    return {fields["way"]: fields["value"] for fields in written}


@pytest.mark.parametrize(
    ("kind", "make", "ways"),
    [
        ("bool", lambda lower: lower, {"as it is", "is_causal=True"}),
        ("float", lambda lower: (~lower).float() * -1e9, {"as it is", "is_causal=True"}),
        ("bool", lambda lower: lower.roll(1, 0), set()),
        ("float", lambda lower: (~lower).float() * -1.0, set()),
        ("float", lambda lower: lower.float() * -0.5 + (~lower).float() * -1e9, set()),
        ("bool", lambda lower: None, set()),
    ],
    ids=["causal", "added", "another", "a bias", "causal with a bias", "not alive"],
)
def test_attention_with_a_mask_is_timed_where_the_mask_is_causal(tmp_path, kind, make, ways):
    torch = pytest.importorskip("torch")
    mask = make(torch.ones(48, 48, dtype=torch.bool).tril())
    found = masked_attention(tmp_path, kind)
    assert set(found) == ways
    assert all(value > 0 for value in found.values())
    del mask


@pytest.mark.parametrize(
    ("name", "strides", "values", "ways"),
    [
        ("aten::index", [1, 512], ["", ""], ["as it is", "contiguous"]),
        ("aten::index_select", [1, 512], ["", "0", ""], ["as it is", "contiguous"]),
        ("aten::index_select", [1, 512], ["", "1", ""], []),
        ("aten::index", [8, 1], ["", ""], []),
    ],
)
def test_rows_that_lie_apart_are_timed_in_a_table_of_rows(tmp_path, name, strides, values, ways):
    torch = pytest.importorskip("torch")
    lookup = event(name, [[512, 8], []], [strides, []], values)
    (tmp_path / "profile").mkdir()
    text = json.dumps({"traceEvents": [lookup]}, indent=2)
    (tmp_path / "profile" / "eager-7.json.gz").write_bytes(gzip.compress(text.encode()))
    written = []
    recorder = SimpleNamespace(
        raw=tmp_path, pid=7, note=None, write=lambda kind, **fields: written.append(fields)
    )
    random = torch.get_rng_state()
    shape_trials.write_shape_trials(torch, recorder, Masks(torch), device=False)
    assert [each["way"] for each in written] == ways
    assert all(each["shape"] == "512x8" and each["value"] > 0 for each in written)
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize(
    ("padding", "ways"), [(False, {"as it is", "is_causal=True"}), (True, set())]
)
def test_a_mask_of_a_call_made_again_is_looked_at(tmp_path, padding, ways):
    torch = pytest.importorskip("torch")
    masks, query = Masks(torch), torch.ones(2, 4, 48, 16)
    lower = torch.ones(48, 48, dtype=torch.bool).tril()
    present = torch.ones(2, 1, 1, 48, dtype=torch.bool)
    present[..., 40:] = not padding
    with masks.looking():
        torch.nn.functional.scaled_dot_product_attention(query, query, query, lower & present)
    assert set(masked_attention(tmp_path, "bool", masks)) == ways


def test_rows_at_multiples_of_16_bytes():
    torch = pytest.importorskip("torch")
    table = torch.zeros(64, 1025, dtype=torch.bfloat16)
    weight = torch.zeros(33, 1024, dtype=torch.bfloat16).t()
    found = shape_trials._aligned([table[:, 1:], weight])
    assert [(tuple(each.shape), each.stride()) for each in found] == [
        ((64, 1024), (1024, 1)),
        ((1024, 40), (1, 1024)),
    ]
    assert shape_trials._aligned([weight, weight.t()]) == []  # each row is a column's memory


def along(name, size, strides, values):
    return event(name, [size, [], [], []], [strides, [], [], []], values)


@pytest.mark.parametrize(
    ("name", "strides", "values", "ways"),
    [
        ("aten::cumsum", [8, 1], ["", "0", ""], True),
        ("aten::cumsum", [8, 1], ["", "-1", ""], False),
        ("aten::cumsum", [1, 64], ["", "0", ""], False),
        ("aten::cummax", [8, 1], ["", "0"], True),
        ("aten::sort", [8, 1], ["", "True", "0", "False"], True),
        ("aten::sort", [8, 1], ["", "0", "False"], False),
        ("aten::topk", [8, 1], ["", "3", "0", "True", "True"], True),
        ("aten::kthvalue", [8, 1], ["", "3", "0", "False"], True),
    ],
)
def test_work_along_elements_that_lie_apart_is_timed_with_them_together(
    tmp_path, name, strides, values, ways
):
    torch = pytest.importorskip("torch")
    events = {"traceEvents": [along(name, [64, 8], strides, values)]}
    (tmp_path / "profile").mkdir()
    path = tmp_path / "profile" / "compiled-7.json.gz"
    path.write_bytes(gzip.compress(json.dumps(events, indent=2).encode()))
    written = []
    recorder = SimpleNamespace(
        raw=tmp_path, pid=7, note=None, write=lambda kind, **fields: written.append(fields)
    )
    shape_trials.write_shape_trials(torch, recorder, Masks(torch), device=False)
    found = [(each["op"], each["way"]) for each in written]
    expected = ("as it is", "contiguous", "copied") if ways else ()
    assert found == [(name, way) for way in expected]


@pytest.mark.parametrize("left", [True, False])
def test_a_batch_with_one_matrix_gives_the_same_as_one_product(left):
    torch = pytest.importorskip("torch")
    a, b = torch.rand(8, 6), torch.rand(4, 6, 3)
    pair = [a.expand(4, 8, 6), b] if left else [torch.rand(4, 8, 6), b[0].expand(4, 6, 3)]
    one = shape_trials.as_one(torch, pair)()
    assert torch.allclose(one.reshape(4, 8, 3), torch.bmm(*pair))
    assert shape_trials.as_one(torch, [torch.rand(4, 8, 6), b]) is None
