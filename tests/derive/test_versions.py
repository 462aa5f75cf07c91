"""Versions that a process logged stand in for what a collector would have asked."""

import polars as pl

from traceview.derive.processes import logged_versions
from traceview.rules.kit import torch_version
from traceview.tables import Tables, from_rows


def logged(*rows):
    found = ({"pass": "logs", "section": "versions", **row} for row in rows)
    return Tables({"configs": from_rows("configs", found)})


def test_versions_become_known_bit_by_bit():
    tables = logged(
        {"rank": 0, "settings": '{"torch": "2.9.1"}'},
        {"rank": 0, "settings": '{"torch": "2.9.1", "python": "3.12.1", "cuda": null}'},
        {"rank": 1, "settings": '{"torch": "2.8.0"}'},
    )
    assert logged_versions(tables, pl.col("rank") == 0) == {"torch": "2.9.1", "python": "3.12.1"}
    assert torch_version(tables) == (2, 9)


def test_what_is_no_json_object_tells_nothing():
    assert logged_versions(logged({"settings": "{"}, {"settings": "[1]"}, {})) == {}
    assert torch_version(Tables()) is None
