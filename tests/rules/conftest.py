"""Recorded runs as tables: unpacked, parsed and derived once a session, only when a test asks."""

import tarfile

import pytest
from rule_scenarios import RUNS

from traceview.derive import derive
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run
from traceview.tables import Tables, from_rows


@pytest.fixture(scope="session")
def tables_of(tmp_path_factory):
    """A function: name of a recorded run → its tables, derived ones included."""
    kept = {}

    def load(name, **settings):
        key = (name, *sorted(settings.items()))
        if key not in kept:
            folder = tmp_path_factory.mktemp(name)
            with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
            run = Run.open(folder / "run")
            parsed = parse_run(run)
            kept[key] = derive(parsed, settings, source_reader(run, parsed))
        return kept[key]

    return load


@pytest.fixture
def make():
    """A function: rows by table name → tables; ``pass`` is cold where a row does not say."""

    def build(**rows_by_table):
        return Tables(
            {
                name: from_rows(name, [{"pass": "cold", **row} for row in rows])
                for name, rows in rows_by_table.items()
            }
        )

    return build
