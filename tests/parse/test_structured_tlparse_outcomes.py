"""tlparse's own test inputs: outcomes and look-ups in caches as its page shows them.

Set TRACEVIEW_TLPARSE_INPUTS as test_structured_tlparse_inputs says. Where tlparse says less:

* a compile id that starts over after a reset is one entry there: its outcomes are joined;
* "break" is its colour of a compile that was restarted, whatever for: here it is ok;
* a cache that was switched off is an artifact of no kind there, and an event ("disabled") here.
"""

import json
import re
import subprocess
from collections import Counter, defaultdict

import pytest
from structured_log_tools import read_file
from test_structured_oracle import TLPARSE
from test_structured_tlparse_inputs import FOLDER, INPUTS

from traceview.parse.damage import Damage

pytestmark = pytest.mark.skipif(not FOLDER, reason="TRACEVIEW_TLPARSE_INPUTS is not set")
SEEN = re.compile(r"<a href='#\[([^\]]+)\]' class='status-(\w+)'")
LOOK_UP = re.compile(r"(\w+?)_cache_(hit|miss|bypass)(?:_\d+)?\.json")


@pytest.fixture(params=INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def both(request, tmp_path):
    """(our tables, tlparse's page, its compile directory)."""
    tables = read_file(request.param, Damage())
    command = [TLPARSE, str(request.param), "-o", str(tmp_path / "out"), "--no-browser"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("tlparse can't read it")
    page = (tmp_path / "out" / "index.html").read_text()
    return tables, page, json.loads((tmp_path / "out" / "compile_directory.json").read_text())


def test_outcomes_are_the_same(both):
    tables, page, _ = both
    ours = defaultdict(set)
    for row in tables["compiles"].filter(is_forward=True).to_dicts():
        ours[row["compile_id"]].add("error" if row["outcome"] == "failed" else "ok")
    theirs = defaultdict(set)
    for name, colour in SEEN.findall(page):
        if colour != "missing":
            theirs[name].add({"break": "ok", "empty": "ok"}.get(colour, colour))
    assert theirs == {name: found for name, found in ours.items() if name in theirs}


def test_look_ups_in_caches_are_the_same(both):
    tables, _, directory = both
    theirs = Counter(
        (re.sub(r"_\d+$", "", name.strip("[]")), found[2])
        for name, entry in directory.items()
        for artifact in entry["artifacts"]
        if (found := LOOK_UP.fullmatch(artifact["name"].rpartition("/")[2]))
    )
    told = tables["cache_events"].select("compile_id", "event").rows()
    assert Counter(row for row in told if row[1] in ("hit", "miss", "bypass")) == theirs
