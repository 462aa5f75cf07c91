"""What the collector keeps of a torch.compile call that torch refuses."""

import inspect
import sys
from types import SimpleNamespace

import pytest

from traceview.collectors.child import regions

REGISTRY = "torch._dynamo.backends.registry"


def compile_like(model=None, *, fullgraph=False, backend="inductor"):
    raise NotImplementedError


def test_a_keyword_that_torch_does_not_know_leaves_the_model_known():
    signature = inspect.signature(compile_like)
    given = regions.arguments(signature, ("net",), {"fulgraph": True})
    assert given == {"model": "net", "fulgraph": True}
    assert regions.arguments(signature, (), {"fulgraph": True}) == {"fulgraph": True}
    bound = regions.arguments(signature, ("net",), {"fullgraph": True})
    assert bound == {"model": "net", "fullgraph": True, "backend": "inductor"}


def refusing(**_tags):
    raise RuntimeError("torch's internals have changed")


@pytest.mark.parametrize(
    ("registry", "offered"),
    [
        (SimpleNamespace(list_backends=lambda exclude_tags: ["a", "b"]), ["a", "b"]),
        (SimpleNamespace(list_backends=refusing), []),
        (None, []),
    ],
)
def test_backends_are_listed_where_torch_lists_them(monkeypatch, registry, offered):
    monkeypatch.setitem(sys.modules, REGISTRY, registry)
    assert regions.backends_offered() == offered
