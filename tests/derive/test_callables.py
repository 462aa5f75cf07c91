"""Every callable has figures of its own, and one of them is the headline."""

from __future__ import annotations

from traceview.derive.callables import callable_speedups, focused
from traceview.derive.pairs import block_pairs
from traceview.derive.speedup import speedups
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "pid": 1}


def blocks(anchor, eager, compiled, first=0, pairs=4):
    return [
        {
            **HEAD, "anchor_region_id": anchor, "pair_index": first + i, "stance": stance,
            "steps": 50, "clock": "host", "duration_ms": 50 * ms, "host_ms": 50 * ms,
            "region_calls": 50, "compiles_inside": 0, "block_index": 2 * (first + i) + j,
        }
        for i in range(pairs)
        for j, (stance, ms) in enumerate((("eager", eager), ("compiled", compiled)))
    ]  # fmt: skip


def made(*regions, windows=(), **more):
    rows = [
        {**HEAD, "region_id": i, "name": f"f{i}", "backend": "inductor", "calls": 900,
         "outermost_calls": 900, **region}
        for i, region in enumerate(regions)
    ]  # fmt: skip
    frames = {
        "runs": [{**HEAD, "exit_kind": "stopped", "steps_seen": 2000}],
        "regions": rows,
        "profile_windows": [{**HEAD, "purpose": "time", "step_kind": "call", **w} for w in windows],
        **more,
    }
    return Tables({name: from_rows(name, rows) for name, rows in frames.items()})


def derived(tables):
    """Rows of callable_speedups by region, the verdict's row, and the tables that are left."""
    pairs = block_pairs(tables)
    tables.put("block_pairs", pairs)
    (verdict,) = speedups(tables, pairs, {}).to_dicts()
    tables.put("callable_speedups", callable_speedups(tables, pairs))
    focused(tables)
    return {r["region_id"]: r for r in tables["callable_speedups"].to_dicts()}, verdict, tables


def test_the_headline_takes_most_of_the_scripts_time():
    both = blocks(0, 3.0, 1.0) + blocks(1, 2.0, 4.0, first=4)
    rows, verdict, _ = derived(made({}, {}, blocks=both))
    assert [rows[i]["headline"] for i in (0, 1)] == [False, True]
    assert [rows[i]["speedup"] for i in (0, 1)] == [3.0, 0.5]
    assert [rows[i]["outcome"] for i in (0, 1)] == ["helped", "hurt"]
    assert [rows[i]["script_ms"] for i in (0, 1)] == [900.0, 3600.0]
    assert (verdict["speedup"], verdict["outcome"], verdict["pairs_used"]) == (0.5, "hurt", 4)


def test_a_backend_for_debugging_is_no_headline_where_inductor_was_measured():
    both = blocks(0, 9.0, 9.5) + blocks(1, 9.0, 3.0, first=4)
    rows, verdict, _ = derived(made({"backend": "aot_eager"}, {}, blocks=both))
    assert rows[1]["headline"]
    assert verdict["speedup"] == 3.0
    assert rows[0]["speedup"] is not None, "it is measured all the same"


def test_it_is_the_headline_where_nothing_else_was_measured():
    found = blocks(0, 9.0, 9.5)
    rows, verdict, _ = derived(made({"backend": "eager"}, {"calls": 1}, blocks=found))
    assert rows[0]["headline"]
    assert verdict["speedup"] == 9.0 / 9.5
    assert rows[1]["speedup"] is None


def test_what_is_left_of_blocks_and_windows_is_the_headlines():
    both = blocks(0, 3.0, 1.0) + blocks(1, 2.0, 4.0, first=4)
    windows = [{"anchor_region_id": i, "stance": "eager", "file": f"{i}"} for i in (0, 1)]
    ops = [{"pass": "cold", "anchor_region_id": i, "stance": "eager"} for i in (0, 1)]
    rows, _, left = derived(made({}, {}, blocks=both, windows=windows, cpu_ops=ops))
    assert set(left["blocks"]["anchor_region_id"]) == {1}
    assert left["profile_windows"]["file"].to_list() == ["1"]
    assert left["cpu_ops"]["anchor_region_id"].to_list() == [1]
    assert left["regions"]["is_anchor"].to_list() == [False, True]
    assert left["block_pairs"].filter("headline")["anchor_region_id"].unique().to_list() == [1]
    assert [rows[i]["windows"] for i in (0, 1)] == [1, 1]


def test_windows_of_another_callable_are_not_shown_as_the_headlines():
    both = blocks(0, 3.0, 1.0) + blocks(1, 2.0, 4.0, first=4)
    windows = [{"anchor_region_id": 0, "stance": "eager", "file": "0"}]
    rows, _, left = derived(made({}, {}, blocks=both, windows=windows))
    assert left["profile_windows"].is_empty()
    assert [rows[i]["windows"] for i in (0, 1)] == [1, 0]


def test_windows_of_older_collectors_stay():
    both = blocks(0, 3.0, 1.0) + blocks(1, 2.0, 4.0, first=4)
    windows = [{"step_kind": None, "stance": "eager", "file": "0"}]
    _, _, left = derived(made({}, {}, blocks=both, windows=windows))
    assert left["profile_windows"].height == 1


def test_why_a_callable_has_no_figures():
    steps = [{**HEAD, "step": i, "anchor_region_id": 0} for i in range(5)]
    calls = [{**HEAD, "region_id": 1, "step": i, "outermost": True} for i in range(5)]
    regions = (
        {},
        {},
        {"calls": 0, "outermost_calls": 0},
        {"error": "ValueError: no such mode"},
        {"calls": 3, "outermost_calls": 3},
        {"calls": 8, "outermost_calls": 0},
    )
    found = made(*regions, blocks=blocks(0, 3.0, 1.0), steps=steps, calls=calls)
    rows, _, _ = derived(found)
    assert {number: row["reason"] for number, row in rows.items()} == {
        0: None,
        1: "its calls are part of the steps of f0",
        2: "the run was stopped before it was called",
        3: "torch.compile raised ValueError",
        4: "it was called 3 times, too few for pairs of blocks",
        5: "it was called only inside other compiled callables",
    }
    assert (rows[1]["part_of_step"], rows[1]["within_region_id"]) == (True, 0)


def test_pairs_that_are_too_few_say_so():
    both = blocks(0, 3.0, 1.0) + blocks(1, 2.0, 4.0, first=4, pairs=1)
    rows, _, _ = derived(made({}, {}, blocks=both))
    assert rows[1]["reason"] == "1 of 1 block pair usable, 3 needed"
    assert rows[1]["speedup_low"] is None
