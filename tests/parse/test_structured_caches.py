"""Cache look-ups that are told by a chromium instant alone."""

import json

import pytest
from structured_log_tools import at, kinds_of, read, record


def instant(name):
    event = {"name": name, "ts": 5.0, "ph": "i", "args": {}, "tid": 0, "pid": 0, "s": "p"}
    return record("chromium_event", {}, payload=json.dumps(event), **at(0))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("fx_graph_cache_disabled", [("fx_graph", "disabled", "0/0")]),
        ("fx_graph_cache_miss", []),
        ("something else", []),
    ],
    ids=["disabled", "an artifact tells", "no cache"],
)
def test_a_disabled_cache_is_a_look_up(tmp_path, name, rows):
    tables, damage = read(tmp_path, instant(name))
    found = tables["cache_events"].select("cache", "event", "compile_id").rows()
    assert (found, kinds_of(damage)) == (rows, {})
