"""Tables of hand-made rows."""

import pytest

from traceview.tables import Tables, from_rows


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
