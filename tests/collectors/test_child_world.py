"""How many ranks torch.distributed says that there are; backends of attention."""

import sys
from types import SimpleNamespace

import pytest

from traceview.collectors.child.environment import settings, world_size


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


@pytest.mark.parametrize("on", [True, False])
def test_a_backend_of_attention_is_on_or_off(on):
    torch = pytest.importorskip("torch")
    before = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(on)
    try:
        known = {name: value for _, name, value, _, _ in settings(torch, frozenset())}
    finally:
        torch.backends.cuda.enable_flash_sdp(before)
    assert (known["cuda.flash_sdp"], known["cuda.math_sdp"]) == (str(on), "True")
