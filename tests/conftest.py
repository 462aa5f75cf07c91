"""Recorded runs as tables: unpacked, parsed and derived once a session, only when a test asks."""

import os

import pytest
from recordings import unpack

from traceview.derive import derive
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run

LEFT_BY_TORCH = ("TORCH", "TRITON", "INDUCTOR")  # how the names of its variables begin


def pytest_configure():
    """The variables of whoever runs the tests are none of theirs."""
    for name in [name for name in os.environ if name.startswith(LEFT_BY_TORCH)]:
        del os.environ[name]


@pytest.fixture(autouse=True)
def own_environment():
    """What a test, or torch in its process (Inductor names its cache folder), sets goes with it."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def tables_of(tmp_path_factory):
    """A function: name of a recorded run → its tables, derived ones included."""
    kept = {}

    def load(name, **settings):
        key = (name, *sorted(settings.items()))
        if key not in kept:
            folder = tmp_path_factory.mktemp(name)
            run = Run.open(unpack(name, folder))
            parsed = parse_run(run)
            kept[key] = derive(parsed, settings, source_reader(run, parsed))
        return kept[key]

    return load
