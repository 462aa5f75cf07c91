"""Tables of hand-made rows with the facts that follow from them, and recorded runs as folders."""

import pytest
from recordings import unpack

from traceview.derive.facts import add_facts
from traceview.tables import Tables, from_rows


@pytest.fixture
def make():
    """A function: rows by table name → tables; ``pass`` is cold where a row does not say."""

    def build(**rows_by_table):
        tables = Tables(
            {
                name: from_rows(name, [{"pass": "cold", **row} for row in rows])
                for name, rows in rows_by_table.items()
            }
        )
        add_facts(tables)
        return tables

    return build


@pytest.fixture
def unpacked():
    """A function: name of a recorded run, folder → the run folder, unpacked below it."""

    return unpack
