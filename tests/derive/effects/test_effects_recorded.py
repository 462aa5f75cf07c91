"""Waterfalls of runs recorded on an H200: they add up, and say what each script is known for."""

from __future__ import annotations

from collections import defaultdict

import pytest

PROFILED = (
    "gpu-autotuned_template", "gpu-cg_skip_mutation", "gpu-gemm_bound", "gpu-launch_bound",
    "gpu-mem_peak_up", "gpu-pointwise", "gpu-reduce_overhead", "gpu-tf32_off",
    "gpu-transformer_training",
)  # fmt: skip
KERNELS = {
    "fusion", "casts_saved", "library_choice", "less_work", "recompute", "copies_added",
    "other_kernels",
}  # fmt: skip


def effects_of(tables):
    return {row["effect"]: row for row in tables["waterfall"].iter_rows(named=True)}


@pytest.mark.parametrize("name", PROFILED)
def test_effects_and_their_rows_add_up_to_the_difference(name, tables_of):
    tables = tables_of(name)
    medians = tables["speedups"].row(0, named=True)
    difference = medians["compiled_ms"] - medians["eager_ms"]
    found = effects_of(tables)
    assert sum(row["ms"] for row in found.values()) == pytest.approx(difference, abs=1e-9)
    rows = defaultdict(float)
    for row in tables["waterfall_rows"].iter_rows(named=True):
        rows[row["effect"]] += row["ms"]
    assert rows == pytest.approx({effect: row["ms"] for effect, row in found.items()})


@pytest.mark.parametrize("name", PROFILED)
def test_kernels_are_the_accountings_busy_time_at_the_speed_of_the_timed_blocks(name, tables_of):
    tables = tables_of(name)
    medians = tables["speedups"].row(0, named=True)
    mine = [row for effect, row in effects_of(tables).items() if effect in KERNELS]
    for stance in ("eager", "compiled"):
        rows = tables["accounting"].filter(stance=stance)
        busy, idle, speed = (
            rows.filter(kind=k)["ms"].sum() for k in ("busy", "idle", "machine_speed")
        )
        timed = medians[f"{stance}_ms"]
        if busy >= idle:  # else the host decides, and kernels take as long as ever
            busy *= timed / (timed - speed)
        assert sum(row[f"{stance}_ms"] or 0.0 for row in mine) == pytest.approx(busy)


@pytest.mark.parametrize(
    ("name", "effect", "part"),
    [
        ("gpu-pointwise", "fusion", 0.8),
        ("gpu-reduce_overhead", "cudagraphs", 0.5),
        ("gpu-launch_bound", "launches_saved", 0.5),
    ],
)
def test_what_a_script_is_known_for_is_most_of_its_saving(name, effect, part, tables_of):
    tables = tables_of(name)
    medians = tables["speedups"].row(0, named=True)
    saved = medians["eager_ms"] - medians["compiled_ms"]
    assert -effects_of(tables)[effect]["ms"] > part * saved


def test_autocast_training_saves_casts(tables_of):
    casts = effects_of(tables_of("gpu-transformer_training"))["casts_saved"]
    assert casts["eager_ms"] > 2 * casts["compiled_ms"] > 0


def test_a_template_is_a_choice_of_library(tables_of):
    rows = tables_of("gpu-autotuned_template")["waterfall_rows"].filter(effect="library_choice")
    assert any("triton_tem" in what for what in rows["what"])


def test_the_same_products_are_no_choice_of_library(tables_of):
    assert "library_choice" not in effects_of(tables_of("gpu-tf32_off"))
