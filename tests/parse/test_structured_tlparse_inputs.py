"""tlparse's own test inputs, where they lie: every record read or counted, ids and metrics its own.

git clone https://github.com/pytorch/tlparse
TRACEVIEW_TLPARSE_INPUTS=tlparse/tests pytest tests/parse/test_structured_tlparse_inputs.py
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from structured_log_tools import read_file
from test_structured_oracle import METRICS, TLPARSE

from traceview.parse.damage import Damage

FOLDER = os.environ.get("TRACEVIEW_TLPARSE_INPUTS", "")
INPUTS = sorted(
    path
    for path in (Path(FOLDER).rglob("*") if FOLDER else ())
    if path.suffix in (".log", ".txt") and path.stat().st_size
)
pytestmark = pytest.mark.skipif(not FOLDER, reason="TRACEVIEW_TLPARSE_INPUTS is not set")
#: Of tlparse's counters: a record of another rank, which it leaves out, is a record too.
READ = ("ok", "other_rank")


@pytest.fixture(params=INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def both(request, tmp_path):
    """(our tables, our damage, tlparse's raw.jsonl, its compile ids, its counters)."""
    damage = Damage()
    tables = read_file(request.param, damage)
    command = [TLPARSE, str(request.param), "-o", str(tmp_path / "out"), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("tlparse can't read it")
    raw = (tmp_path / "out" / "raw.jsonl").read_text().splitlines()
    names = json.loads((tmp_path / "out" / "compile_directory.json").read_text())
    counters = {name: int(n) for name, n in re.findall(r"(\w+): (\d+)", done.stderr)}
    return tables, damage, [json.loads(line) for line in raw], set(names), counters


def test_every_record_is_read_or_counted(both):
    tables, damage, _, _, counters = both
    known = tables["log_records"]
    strings = known.filter(key="str")["records"].sum()
    assert known["records"].sum() - strings == sum(counters.get(name, 0) for name in READ)
    assert bool(damage.total) == any(name.startswith("fail_") for name in counters)


def test_the_same_ids_are_found(both):
    tables, _, _, names, counters = both
    theirs = {re.sub(r"_\d+$", "", name.strip("[]")) for name in names} - {"-/-"}
    ours = set(tables["compiles"]["compile_id"])
    ours |= {name for table in ("graphs", "compile_phases", "guards", "cache_events", "symbols",
             "graph_breaks") for name in tables[table]["compile_id"]}  # fmt: skip
    found = {name for name in theirs if not name.endswith("/-/-")}
    assert found <= ours or counters.get("other_rank")


def test_the_same_metrics_are_read(both):
    tables, _, raw, _, counters = both
    # Ahead-of-time Inductor alone has metrics, but no frame and so no compile.
    compiled = [line for line in raw if line.get("frame_id") is not None]
    theirs = [line["compilation_metrics"] for line in compiled if "compilation_metrics" in line]
    ours = tables["compiles"].filter(is_forward=True, metrics=True).to_dicts()
    assert len(ours) == len(theirs) or "other_rank" in counters
    for row, metrics in zip(ours, theirs, strict="other_rank" not in counters):
        for field, column in METRICS.items():
            if field in metrics and row["outcome"] != "limit":
                assert row[column] == metrics[field], (row["compile_id"], field)
