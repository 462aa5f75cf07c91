"""Generated C++ kernels get ranges while a window is open, and are as before when it is closed."""

import sys
import types

import pytest

from traceview.collectors.child.marks import KernelMarks


class Ranges:
    """What stands in for the profiler: names as they are opened, and what is closed."""

    def __init__(self):
        self.seen = []

    def begin(self, name):
        self.seen.append(f"begin {name}")
        seen = self.seen

        class Range:
            def __exit__(self, *_error):
                seen.append(f"end {name}")

        return Range()


@pytest.fixture
def generated(monkeypatch):
    """A module as Inductor writes it: ``call`` finds its kernel among the module's names."""
    module = types.ModuleType("generated")
    module.cpp_fused_add_0 = lambda x: x + 1
    module.cpp_note = "no kernel"
    module.call = lambda x: module.cpp_fused_add_0(x)
    cache = types.SimpleNamespace(PyCodeCache=types.SimpleNamespace(modules=[module, module]))
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", cache)
    return module


def test_a_kernel_has_a_range_only_between_start_and_stop(generated):
    ranges, kernel = Ranges(), generated.cpp_fused_add_0
    marks = KernelMarks(ranges.begin)
    assert generated.call(1) == 2
    marks.start()
    assert generated.call(2) == 3
    marks.stop()
    assert generated.call(3) == 4
    opened = [each for each in ranges.seen if each.startswith("begin")]
    assert set(ranges.seen) == {"begin cpp_fused_add_0", "end cpp_fused_add_0"}
    assert len(opened) == 1
    assert generated.cpp_fused_add_0 is kernel
    assert generated.cpp_note == "no kernel"


def test_a_kernel_that_raises_closes_its_range(generated):
    ranges = Ranges()
    marks = KernelMarks(ranges.begin)
    marks.start()
    with pytest.raises(TypeError):
        generated.call("text")
    marks.stop()
    assert ranges.seen[-1] == "end cpp_fused_add_0"


def test_nothing_is_done_where_inductor_is_not_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._inductor.codecache", raising=False)
    marks = KernelMarks(Ranges().begin)
    marks.start()
    marks.stop()
