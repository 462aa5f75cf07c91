"""Dispatch modes that keep Dynamo from compiling, as table ``environment`` has them."""

import sys

import pytest

from traceview.collectors.child.environment import refused_modes

MODULE = "torch.utils._python_dispatch"


def mode(name, **flags):
    return type(name, (), {key: lambda self, value=value: value for key, value in flags.items()})()


@pytest.mark.parametrize(
    ("stack", "names"),
    [
        ([], []),
        ([mode("Counts"), mode("_FlopCounterMode", is_infra_mode=False)],
         ["Counts", "FlopCounterMode"]),
        ([mode("FakeTensorMode", is_infra_mode=True)], []),
        ([mode("DebugMode", is_infra_mode=False, ignore_compile_internals=True)], []),
    ],
)  # fmt: skip
def test_modes_that_dynamo_refuses(monkeypatch, stack, names):
    known = type("module", (), {"_get_current_dispatch_mode_stack": lambda: stack})
    monkeypatch.setitem(sys.modules, MODULE, known)
    assert refused_modes() == names


def test_a_torch_without_that_function_has_none(monkeypatch):
    monkeypatch.setitem(sys.modules, MODULE, object())
    assert refused_modes() == []
