"""pytest plugin: the marker ``compile_budget`` and the fixture ``torch_compiles``.

    @pytest.mark.compile_budget(recompiles=0, graph_breaks=0)
    def test_training_step(): ...

Loaded by every pytest where traceview is installed, so that it imports nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from traceview.testing import Compiles

_MARKER = (
    "compile_budget(compiles, graph_breaks, recompiles, seconds): fail if torch.compile takes more "
    "in this test (traceview)"
)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test with the marker within its budget; fixtures are not part of it."""
    marker = item.get_closest_marker("compile_budget")
    if marker is None:
        return (yield)
    from traceview.testing import compile_budget

    with compile_budget(**marker.kwargs):
        return (yield)


@pytest.fixture
def torch_compiles() -> Compiles:
    """What torch.compile does in a part of the test: ``with torch_compiles:``, then its figures."""
    from traceview.testing import Compiles

    return Compiles()
