"""Which length is advised where several transforms are timed, and how it is asked for."""

import pytest

from traceview.rules import ind_fft_length

GAIN = {"kind": "fft", "way": "length 1", "base_ms": 1.2, "ms": 0.3, "clock": "device"}


def trials(*works):
    for op, shape, slow_us, way in works:
        one = {"op": op, "shape": shape, "count": 1.0, "clock": "device"}
        yield one | {"way": "as it is", "value": slow_us}
        yield one | {"way": way, "value": slow_us / 4}


SHORT = ("aten::_fft_r2c", "8x509", 200.0, "length 512")
LONG = ("aten::_fft_r2c", "8x32749", 1000.0, "length 32768")
IMAGE = ("aten::_fft_r2c", "509x1021", 1000.0, "length 512x1024")


@pytest.mark.parametrize(
    ("works", "padded"),
    [
        ((SHORT, LONG), "torch.fft.rfft(x, n=32768)"),
        ((LONG, SHORT), "torch.fft.rfft(x, n=32768)"),
        ((SHORT, IMAGE), "torch.fft.rfftn(x, s=(512, 1024))"),
    ],
)
def test_the_length_is_that_of_the_slowest_transform(make, works, padded):
    tables = make(
        shape_gains=[GAIN],
        shape_trials=list(trials(*works)),
        kernel_groups=[{"stance": "compiled", "cpu_op": "aten::_fft_r2c", "ms": 1.2}],
        speedups=[{"eager_ms": 4.0, "compiled_ms": 4.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 4.0}],
    )
    (finding,) = ind_fft_length.check(tables)
    assert finding.snippet.text == padded
