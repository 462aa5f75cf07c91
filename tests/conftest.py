"""Recorded runs as tables: unpacked, parsed and derived once a session, only when a test asks."""

import pytest
from recordings import unpack

from traceview.derive import derive
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run


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
