"""How many ranks torch.distributed says that there are."""

import sys
from types import SimpleNamespace

import pytest

from traceview.collectors.child.environment import world_size


def distributed(available=True, initialized=True):
    return SimpleNamespace(
        is_available=lambda: available,
        is_initialized=lambda: initialized,
        get_world_size=lambda: 4,
    )


@pytest.mark.parametrize(
    ("module", "size"),
    [
        (distributed(), 4),
        (distributed(initialized=False), None),
        (distributed(available=False), None),
        (None, None),
    ],
)
def test_the_default_groups_size(monkeypatch, module, size):
    monkeypatch.setitem(sys.modules, "torch.distributed", module)
    assert world_size() == size
