"""What another way to do the step's heaviest work saves: all shapes of a kind together."""

import pytest

from traceview.derive.limits import shape_gains
from traceview.tables import Tables, from_rows


def trial(way, value, shape="16x128, 128x128", count=10.0, op="aten::mm"):
    head = {"pass": "cold", "device": "cuda:0", "dtype": "float32", "clock": "device"}
    return head | {"op": op, "shape": shape, "count": count, "way": way, "value": value}


def test_shapes_that_gain_and_shapes_that_lose_count_together():
    rows = [
        trial("as it is", 50.0),
        trial("TF32", 55.0),
        trial("as it is", 400.0, shape="4096x4096, 4096x4096", count=1.0),
        trial("TF32", 100.0, shape="4096x4096, 4096x4096", count=1.0),
    ]
    (found,) = shape_gains(Tables({"shape_trials": from_rows("shape_trials", rows)})).to_dicts()
    assert (found["kind"], found["way"], found["shapes"]) == ("gemm", "TF32", 2)
    assert found["base_ms"] == pytest.approx(0.9)
    assert found["ms"] == pytest.approx(0.65)
    assert found["share"] == pytest.approx(1 - 0.65 / 0.9)


def test_a_way_without_its_counterpart_is_left_out():
    table = from_rows("shape_trials", [trial("TF32", 55.0)])
    assert shape_gains(Tables({"shape_trials": table})).is_empty()
