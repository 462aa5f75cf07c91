"""Amounts planted on purpose: each is found under its own name, and the accounting closes."""

import tarfile
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from truths import PLANTS, SCENARIOS, TOLERANCE, compare

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"
RECORDED = sorted(path.name.removesuffix(".tar.xz") for path in RUNS.glob("truth-*.tar.xz"))


def device_and_script(name):
    _, device, script = name.split("-", 2)
    return device, script


@cache
def truth(name):
    """What the script wrote about what it planted."""
    with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
        return archive.extractfile("run/truth.json").read().decode()


def planted():
    """A recorded run, one amount planted in it, and the stance that shows it."""
    for name in RECORDED:
        device, script = device_and_script(name)
        for plant in PLANTS:
            if plant.script == script and device in plant.devices:
                for stance in plant.stances:
                    label = f"{name}:{stance}:{plant.name}".replace(" ", "_")
                    yield pytest.param(name, plant, stance, id=label)


@pytest.mark.parametrize(("name", "plant", "stance"), list(planted()))
def test_what_was_planted_is_found_under_its_name(name, plant, stance, tables_of):
    every = compare(tables_of(name), plant.script, device_and_script(name)[0], truth(name))
    found = next(one for one in every if one.plant is plant and one.stance == stance)
    assert found.difference is not None, str(found)
    assert abs(found.difference) <= TOLERANCE, str(found)


@pytest.mark.parametrize("name", RECORDED)
def test_the_effects_add_up_to_the_difference(name, tables_of):
    tables = tables_of(name)
    timed = dict(tables["step_counts"].select("stance", "timed_step_ms").iter_rows())
    difference = timed["compiled"] - timed["eager"]
    assert tables["waterfall"]["ms"].sum() == pytest.approx(difference, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in RECORDED if "loader" in name])
def test_loading_stands_at_the_line_that_asks_for_a_batch(name, tables_of):
    details = tables_of(name)["account_details"]
    waited = details.filter(pl.col("what").str.contains("DataLoader"), pl.col("ms") > 1)
    assert set(waited["stance"]) == {"eager", "compiled"}
    script = f"{device_and_script(name)[1]}.py"
    for file, line in waited.select("file", "line").unique().iter_rows():
        assert file.endswith(f"/{script}")
        assert "next(batches)" in (SCENARIOS / script).read_text().splitlines()[line - 1]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_at_least_twelve_scripts_are_recorded(device):
    scripts = {script for at, script in map(device_and_script, RECORDED) if at == device}
    assert len(scripts & {plant.script for plant in PLANTS}) >= 12


def test_every_script_plants_something():
    scripts = {path.stem for path in SCENARIOS.glob("*.py")}
    assert scripts == {plant.script for plant in PLANTS}
