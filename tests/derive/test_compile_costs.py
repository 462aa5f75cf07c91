"""Compile seconds by phase and frame, and the region that each compile belongs to."""

import pytest

from traceview.derive.compile_costs import PHASES, compile_costs
from traceview.derive.region_costs import compile_regions, region_compiles
from traceview.tables import Tables, from_rows


def compiled(key="a", **more):
    return {
        "pass": "cold",
        "pid": 1,
        "compile_key": key,
        "compile_id": key,
        "is_forward": True,
        "co_name": "forward",
        "co_filename": "m.py",
        "co_firstlineno": 7,
        "started_us": 0.0,
        "duration_us": 10e6,
        "dynamo_us": 10e6,
        "aot_us": 7e6,
        "inductor_us": 5e6,
        "codegen_us": 4e6,
    } | more


def costs(*rows):
    return compile_costs(Tables({"compiles": from_rows("compiles", rows)})).to_dicts()


def test_nested_times_become_exclusive_phases_that_add_up():
    (row,) = costs(compiled())
    assert [row[name] for name in PHASES] == [3.0, 2.0, 1.0, 4.0]
    assert row["total_s"] == 10.0


def test_a_lazy_backward_has_no_tracing_of_its_own_and_is_no_further_compile():
    backward = {"is_forward": False, "started_us": 50e6, "duration_us": 6e6, "backward_us": 6e6}
    lazy = compiled(**backward, dynamo_us=None, aot_us=None)
    (row,) = costs(compiled(), lazy)
    assert row["compiles"] == 1
    assert row["total_s"] == 16.0
    assert row["dynamo_s"] == 3.0
    assert row["aot_s"] == 3.0


def test_a_compile_inside_another_is_counted_once():
    inner = compiled("b", co_name="inner", co_firstlineno=30, started_us=1e6, duration_us=2e6,
                     dynamo_us=2e6, aot_us=1e6, inductor_us=1e6, codegen_us=0.0)  # fmt: skip
    rows = {row["co_name"]: row for row in costs(compiled(), inner)}
    assert rows["forward"]["total_s"] == 8.0
    assert rows["inner"]["total_s"] == 2.0


def test_a_skipped_frame_without_metrics_costs_what_is_known():
    none = dict.fromkeys(("duration_us", "dynamo_us", "aot_us", "inductor_us", "codegen_us"))
    (row,) = costs(compiled(**none))
    assert row["total_s"] == 0.0
    assert row["compiles"] == 1


def regional(compiles, calls=()):
    regions = [
        {"pass": "cold", "pid": 1, "region_id": i, "target_file": "m.py", "target_line": 7 + i}
        for i in range(2)
    ]
    tables = Tables(
        {
            "regions": from_rows("regions", regions),
            "compiles": from_rows("compiles", compiles),
            "calls": from_rows("calls", calls),
        }
    )
    tables.put("compile_regions", compile_regions(tables))
    return tables


def owners(tables):
    """(compile key, region) of each compile, in order of start."""
    return tables["compile_regions"].select("compile_key", "region_id").rows()


def call(region, started_us, host_ms):
    return {
        "pass": "cold", "pid": 1, "region_id": region, "started_us": started_us,
        "host_ms": host_ms, "compiles_inside": 1,
    }  # fmt: skip


def test_a_compile_belongs_to_the_innermost_call_around_it():
    calls = [call(0, 0.0, 100_000.0), call(1, 40e6, 20_000.0)]
    tables = regional([compiled("a", started_us=45e6), compiled("b", started_us=5e6)], calls)
    assert owners(tables) == [("b", 0), ("a", 1)]


def test_without_calls_the_code_object_decides_and_backwards_follow():
    backward = compiled(
        "a", is_forward=False, started_us=60e6, co_filename=None, co_firstlineno=None
    )
    tables = regional([compiled("a"), backward, compiled("z", co_firstlineno=99, started_us=30e6)])
    assert owners(tables) == [("a", 0), ("a", 0)]  # nobody knows whose z is
    seconds, compiles = region_compiles(tables)["cold", 1, 0]
    assert compiles == 1
    assert seconds == pytest.approx(20.0)


def test_code_that_one_region_had_compiled_before_is_that_ones_again():
    rest = {"co_name": "torch_dynamo_resume_in_forward_at_9", "co_firstlineno": 9}
    shared = {"co_name": "helper", "co_firstlineno": 50}
    calls = [call(0, 0.0, 10_000.0), call(1, 20e6, 10_000.0)]
    compiles = [
        compiled("a", started_us=1e6, **rest),
        compiled("b", started_us=2e6, **shared),
        compiled("c", started_us=21e6, **shared),
        compiled("d", started_us=50e6, **rest),
        compiled("e", started_us=51e6, **shared),
    ]
    found = owners(regional(compiles, calls))
    assert found == [("a", 0), ("b", 0), ("c", 1), ("d", 0)]  # both regions call the helper
