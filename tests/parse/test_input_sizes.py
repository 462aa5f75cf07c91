"""Tables `input_sizes` and `served_calls`: of a region's last totals; wrong values are null."""

import json

from traceview.parse.collected import read_pass
from traceview.parse.damage import Damage
from traceview.run import Ending, Manifest, PassRecord, Run

BEGIN = {"event": "process", "t": 1.0, "pid": 7, "rank": 1, "argv": [], "cwd": "/w"}


def tables_of(folder, *events):
    raw = folder / "raw" / "cold"
    raw.mkdir(parents=True)
    text = "".join(json.dumps(event) + "\n" for event in (BEGIN, *events))
    (raw / "events-7.jsonl").write_text(text)
    record = PassRecord("cold", "raw/cold", started_us=0.0, ending=Ending("exit", 0, None, 1.0))
    return read_pass(Run(folder, Manifest()), record, Damage())


def end(region, sizes):
    return {"event": "region_end", "t": 2.0, "region_id": region, "input_sizes": sizes}


def test_the_last_totals_of_a_region_count(tmp_path):
    early, late = end(0, [["32x64", 3]]), end(0, [["32x64", 40], ["16x64", 2]])
    tables = tables_of(tmp_path, early, end(1, [["", 5]]), late)
    assert sorted(tables["input_sizes"].rows()) == [
        ("cold", 1, 7, 0, "16x64", 2), ("cold", 1, 7, 0, "32x64", 40), ("cold", 1, 7, 1, "", 5),
    ]  # fmt: skip


def test_damaged_counts_are_left_out(tmp_path):
    tables = tables_of(tmp_path, end(0, [["8", "many"], ["8"], 3, None]), end(1, "8"), end(2, None))
    assert tables["input_sizes"].rows() == [("cold", 1, 7, 0, "8", None)]


def test_an_older_recording_has_no_such_table(tmp_path):
    assert "input_sizes" not in tables_of(tmp_path, {"event": "region_end", "region_id": 0})


def served(region, *rows):
    return {"event": "region_end", "t": 2.0, "region_id": region, "served": list(rows)}


def test_the_last_calls_without_compiled_code_count(tmp_path):
    early, late = ["default", False, 3, 0, []], ["eager_on_recompile", False, 9, 4, ["8x3"]]
    tables = tables_of(tmp_path, served(0, early), served(0, early, late, ["default"], 3))
    assert tables["served_calls"].rows() == [
        ("cold", 1, 7, 0, "default", False, 3, 0, []),
        ("cold", 1, 7, 0, "eager_on_recompile", False, 9, 4, ["8x3"]),
    ]
