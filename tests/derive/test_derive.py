"""The order of derivation: what each step is given, and what it leaves behind."""

import pytest

from traceview import derive as package
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "pid": 1}


@pytest.fixture
def given(monkeypatch):
    """What the profile's tables were made from in this test."""
    seen = {}

    def profile_tables(tables, step_ms, found):
        seen.update(step_ms)
        window = {"pass": "cold", "stance": "compiled", "steps": 3}
        return {"step_counts": from_rows("step_counts", [window])}

    monkeypatch.setattr(package, "profile_tables", profile_tables)
    return seen


def measured():
    blocks = [
        HEAD
        | {"pair_index": i, "stance": stance, "steps": 10, "clock": "host", "duration_ms": 10 * ms}
        for i in range(4)
        for stance, ms in (("eager", 3.0), ("compiled", 1.0))
    ]
    regions = [HEAD | {"region_id": i, "name": "f", "calls": 9, "target_line": i} for i in (0, 1)]
    compiled = {"compile_key": "k", "co_firstlineno": 0, "duration_us": 2e6, "started_us": 0.0}
    return Tables(
        {
            "runs": from_rows("runs", [HEAD | {"exit_kind": "stopped"}]),
            "blocks": from_rows("blocks", blocks),
            "regions": from_rows("regions", regions),
            "compiles": from_rows("compiles", [HEAD | compiled]),
        }
    )


def test_the_profile_is_scaled_to_the_unprofiled_medians(given):
    package.derive(measured(), {})
    assert given == {"eager": 3.0, "compiled": 1.0}


def test_region_costs_count_the_compiles_of_each_region(given):
    first, second = package.derive(measured(), {})["region_costs"].to_dicts()
    assert (first["share"], first["compile_s"], first["compiles"]) == (None, 2.0, 1)
    assert (second["share"], second["compile_s"], second["compiles"]) == (None, 0.0, 0)


def test_everything_is_there_and_the_input_is_left_alone(given):
    tables = measured()
    made = package.derive(tables, {"job_steps": 7.0}, lambda file: None)
    names = {"block_pairs", "speedups", "compile_costs", "region_costs", "step_counts",
             "script_timers", "settings"}  # fmt: skip
    assert names <= set(made)
    assert not names & set(tables)
    assert made["settings"].select("name", "value").rows() == [("job_steps", 7.0)]
    assert made["speedups"]["job_steps"].to_list() == [7]


def test_what_was_not_recorded_is_not_derived(given):
    made = package.derive(Tables(), {})
    assert not {"block_pairs", "speedups", "compile_costs", "script_timers"} & set(made)


def test_deriving_again_replaces(given):
    once = package.derive(measured(), {"job_steps": 7.0})
    again = package.derive(once, {})
    assert again["speedups"].height == 1
    assert again["speedups"]["job_steps"].to_list() == [None]
    assert again["settings"].is_empty()
