"""Tables of hand-made rows with the facts that follow from them, and recorded runs as folders."""

import pytest
from facts import with_facts
from recordings import unpack

from traceview.tables import Tables, from_rows


@pytest.fixture
def make():
    """A function: rows by table name → tables, with the facts that ``derive`` finds in them.

    ``pass`` is cold where a row does not say.
    """

    def build(**rows_by_table):
        frames = {
            name: from_rows(name, [{"pass": "cold", **row} for row in rows])
            for name, rows in rows_by_table.items()
        }
        return with_facts(Tables(frames))

    return build


@pytest.fixture
def unpacked():
    """A function: name of a recorded run, folder → the run folder, unpacked below it."""

    return unpack
