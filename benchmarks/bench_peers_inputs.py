"""What tlparse and Holistic Trace Analysis read of their own test inputs, and what traceview reads.

    python benchmarks/bench_peers_inputs.py [--tlparse PROGRAM] [--logs FOLDER]
                                            [--python PEERS] [--traces FOLDER]

FOLDER is ``tests/inputs`` of https://github.com/pytorch/tlparse, or ``tests/data`` of
https://github.com/facebookresearch/HolisticTraceAnalysis; PEERS an interpreter that has the latter.
Of a structured log: records, compile ids and payloads whose digest is wrong. Of a profiler trace:
every complete event is read, counted, or of a category that is passed over, and there are as many
of each name. Prints a line for each file, and exits with 1 if anything differs but for the reasons
in docs/measurements.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from traceview.inputs import find
from traceview.parse.damage import Damage
from traceview.parse.kineto.events import PASSED_OVER
from traceview.reading.mapping import Log, parse

#: What tlparse calls records that are of no compile.
_NO_COMPILE = "-/-"
_ATTEMPT = re.compile(r"_\d+$")
_STATS = re.compile(r"Stats \{([^}]*)\}")
_EVENTS = ("cpu_ops", "kernel_launches", "kernels")
HTA = """
import collections, json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
for path in sys.stdin.read().splitlines():
    try:
        _, frame, symbols = parse_trace_dataframe(path, ParserConfig.get_default_cfg())
        names = symbols.get_sym_table()
        found = collections.Counter(names[number] for number in frame["name"])
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    print(json.dumps(found))
"""


def main() -> None:
    """Compare what is given, and print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tlparse", default="tlparse")
    arguments.add_argument("--logs", type=Path)
    arguments.add_argument("--python", default=sys.executable)
    arguments.add_argument("--traces", type=Path)
    given = arguments.parse_args()
    differing = []
    if given.logs:
        differing += logs(given.logs, given.tlparse)
    if given.traces:
        differing += traces(given.traces, given.python)
    print(f"\n{len(differing)} differ: {differing}")
    sys.exit(1 if differing else 0)


def read(path: Path) -> tuple[dict[str, pl.DataFrame], dict[str, int], str]:
    """Tables of a file, what was counted as damage, and what it was taken for."""
    tables: dict[str, pl.DataFrame] = {}
    damage = Damage()
    found = find([str(path)])
    for source in found.sources:
        for name, frame in parse(Log(source, "logs", damage)):
            tables[name] = tables[name].vstack(frame) if name in tables else frame
    rows = damage.frame("logs").group_by("kind").agg(pl.col("times").sum())
    kind = found.sources[0].kind if found.sources else found.skipped[0].reason
    return tables, dict(rows.iter_rows()), kind


def logs(folder: Path, program: str) -> list[str]:
    """tlparse's own logs: records, wrong digests, compile ids."""
    print("| log | tlparse: records, bad digests, ids | traceview | ids of one only |")
    print("| --- | --- | --- | --- |")
    differing = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        theirs, their_ids = by_tlparse(path, program)
        tables, damage, kind = read(path)
        records = tables.get("log_records", pl.DataFrame({"key": [], "records": []}))
        mine = records.filter(pl.col("key") != "str")["records"].sum() if len(records) else 0
        ids = {
            each
            for table in tables.values()
            if "compile_id" in table.columns
            for each in table["compile_id"].drop_nulls().to_list()
        }
        bad = damage.get("bad_digest", 0) + damage.get("truncated", 0)  # cut in a payload
        one = sorted(ids ^ their_ids)
        print(
            f"| {name} | {theirs['ok']}, {theirs['fail_payload_md5']}, {len(their_ids)}"
            f" | {mine}, {bad}, {len(ids)} ({kind}) | {', '.join(one)} |"
        )
        if (mine, bad, ids) != (theirs["ok"], theirs["fail_payload_md5"], their_ids):
            differing.append(name)
    return differing


def by_tlparse(path: Path, program: str) -> tuple[Counter[str], set[str]]:
    """Its own statistics of a log, and the compile ids of its pages."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [program, str(path), "-o", out, "--overwrite", "--no-browser"],
            capture_output=True,
            text=True,
            check=False,
        )
        said = _STATS.search(done.stderr + done.stdout)
        stats: Counter[str] = Counter()
        for part in said[1].split(",") if said else ():
            name, _, number = part.partition(":")
            if number:
                stats[name.strip()] = int(number)
        directory = Path(out, "compile_directory.json")
        known = json.loads(directory.read_bytes()) if directory.exists() else {}
    ids = {_ATTEMPT.sub("", name.strip("[]")) for name in known}
    return stats, ids - {_NO_COMPILE}


def traces(folder: Path, python: str) -> list[str]:
    """Holistic Trace Analysis' own traces: events by name."""
    paths = sorted(path for path in folder.rglob("*") if path.name.endswith((".json", ".json.gz")))
    done = subprocess.run(
        [python, "-c", HTA],
        input="\n".join(map(str, paths)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print("\n| trace | in it | passed over | traceview: read, counted | HTA | names that differ |")
    print("| --- | --- | --- | --- | --- | --- |")
    differing = []
    for path, line in zip(paths, done.stdout.splitlines(), strict=True):
        theirs: Any = json.loads(line)
        tables, damage, kind = read(path)
        mine: Counter[str] = Counter()
        for name in _EVENTS:
            if name in tables:
                mine.update(tables[name]["name"].to_list())
        others = tables["traces"]["other_events"].sum() if "traces" in tables else 0
        counted = sum(damage.values()) + others
        events = complete(path)
        passed = [each for each in events if each.get("cat") in PASSED_OVER]
        name = path.relative_to(folder).as_posix()
        row = f"| {name} | {len(events)} | {len(passed)} | {mine.total()}, {counted} |"
        if isinstance(theirs, str):
            print(f"{row} {theirs[:60]} | {kind} |")
            continue
        # what HTA keeps of what is passed over, or was counted, is no difference of reading
        known = mine + Counter(each["name"] for each in passed)
        off = sorted(key for key in theirs if theirs[key] > known[key])
        more = sorted(key for key in mine if mine[key] > theirs.get(key, 0))
        missed = sum(theirs[key] - known[key] for key in off)
        shown = ", ".join(f"{key}: {theirs.get(key, 0)}/{mine[key]}" for key in (more + off)[:3])
        print(f"{row} {sum(theirs.values())} | {shown} |")
        if len(events) != mine.total() + counted + len(passed) or more or missed > counted:
            differing.append(name)
    return differing


def complete(path: Path) -> list[dict[str, Any]]:
    """Events with a begin and a duration, by nothing but a JSON parser."""
    data = path.read_bytes()
    found = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    events = found.get("traceEvents", []) if isinstance(found, dict) else found
    return [event for event in events if event.get("ph") == "X"]


if __name__ == "__main__":
    main()
