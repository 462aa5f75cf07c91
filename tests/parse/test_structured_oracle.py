"""tlparse reads the same logs: compile ids, records and metrics must agree with our tables.

Known errors of tlparse's, left out of the comparison, each with its reason:

* ids that repeat after a reset are one entry there (it keeps no epochs): compared as sets of ids;
* a break in one attempt and the metrics of the next are two entries: attempts are joined first;
* its stack trie, and so its status colours, lack compiles without dynamo_start (the recompile
  limit) and call a data-dependent break a success: outcomes are compared by the metrics that it
  repeats in raw.jsonl, not by its colours.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from structured_log_tools import read, recorded

NAMES = ("guards", "breaks", "resets", "failures", "inductor", "hits", "autograd")
TLPARSE = shutil.which("tlparse") or shutil.which("tlparse", path=str(Path(sys.executable).parent))
METRICS = {
    "co_name": "co_name",
    "co_firstlineno": "co_firstlineno",
    "fail_type": "fail_type",
    "fail_reason": "fail_reason",
    "graph_op_count": "graph_op_count",
    "guard_count": "guard_count",
    "cache_size": "cache_size",
    "duration_us": "duration_us",
    "has_guarded_code": "has_guarded_code",
    "dynamo_cumulative_compile_time_us": "dynamo_us",
}


@pytest.fixture(scope="module", params=NAMES)
def both(request, tmp_path_factory):
    """(our tables, tlparse's raw.jsonl objects, its compile directory, its counters)."""
    assert TLPARSE, "tlparse is a dependency of the project"
    folder = tmp_path_factory.mktemp(request.param)
    tables, _ = read(folder, recorded(request.param))
    command = [TLPARSE, str(folder / "dedicated_log_torch_trace_x.log"), "-o", str(folder / "out")]
    done = subprocess.run([*command, "--no-browser"], capture_output=True, text=True, check=True)
    raw = (folder / "out" / "raw.jsonl").read_text().splitlines()
    directory = json.loads((folder / "out" / "compile_directory.json").read_text())
    return tables, [json.loads(line) for line in raw], directory, done.stderr


def test_the_same_records_are_found(both):
    tables, raw, _, stderr = both
    ok = int(re.search(r"ok: (\d+)", stderr)[1])
    known = tables["log_records"]
    assert known["records"].sum() == ok + known.filter(key="str")["records"].sum()
    envelopes = [line for line in raw if "string_table" not in line]
    artifacts = sum("artifact" in line for line in envelopes)
    assert known.filter(key="artifact")["records"].sum() == artifacts


def test_the_same_compile_ids_are_found(both):
    tables, _, directory, _ = both
    theirs = {re.sub(r"_\d+$", "", name.strip("[]")) for name in directory} - {"-/-"}
    ours = set(tables["compile_phases"]["compile_id"]) | set(tables["graphs"]["compile_id"])
    ours |= set(tables["compiles"]["compile_id"])
    assert theirs - {"!0/-/-"} <= ours
    compiled = set(tables["compiles"]["compile_id"])
    assert compiled <= theirs


def test_the_same_metrics_are_read(both):
    tables, raw, _, _ = both
    theirs = [line["compilation_metrics"] for line in raw if "compilation_metrics" in line]
    ours = tables["compiles"].filter(is_forward=True, metrics=True).to_dicts()
    assert len(ours) == len(theirs)
    for row, metrics in zip(ours, theirs, strict=True):
        for field, column in METRICS.items():
            if row["outcome"] != "limit" or not column.startswith("co_"):
                assert row[column] == metrics[field], (row["compile_id"], field)


def test_backwards_are_counted_the_same(both):
    tables, raw, _, _ = both
    theirs = sum("bwd_compilation_metrics" in line for line in raw)
    assert tables["compiles"].filter(is_forward=False).height == theirs
