"""Chromium events without their log: phases and compiles as the structured log tells them."""

import gzip
import io
import json
from pathlib import Path

import pytest

from traceview.parse import chromium, structured
from traceview.parse.damage import Damage
from traceview.parse.kineto.splitter import objects
from traceview.tables import Tables

LOG = Path(__file__).resolve().parents[2] / "fixtures" / "structured" / "inductor.log.gz"


def read(reader, data):
    """Tables of ``data``, and what was damaged."""
    damage, tables = Damage(), {}
    for name, frame in reader(io.BytesIO(data), "events", damage):
        tables[name] = tables[name].vstack(frame) if name in tables else frame
    return Tables(tables), damage


@pytest.fixture(scope="module")
def log():
    return gzip.decompress(LOG.read_bytes())


@pytest.fixture(scope="module")
def events(log):
    """The payloads of the log's chromium events, in order."""
    found, payload = [], None
    for line in log.split(b"\n"):
        if line.startswith(b"\t"):
            if payload is not None:
                payload.append(line[1:])
            continue
        if payload:
            found.append(json.loads(b"".join(payload)))
        payload = [] if b'"chromium_event"' in line else None
    assert len(found) > 100
    return found


def test_phases_are_those_of_the_log(log, events):
    told, damage = read(chromium.read_stream, json.dumps(events).encode())
    whole, _ = read(structured.read_stream, log)
    columns = ["compile_id", "name", "depth", "started_us", "duration_us"]
    timed = whole["compile_phases"].drop_nulls("started_us").select(columns)
    assert told["compile_phases"].select(columns).sort(columns).equals(timed.sort(columns))
    assert damage.total == 0


def test_compiles_have_the_time_of_their_outermost_phase(events):
    told, _ = read(chromium.read_stream, json.dumps(events).encode())
    assert told["compiles"]["duration_us"].null_count() == 0
    phases = told["compile_phases"].filter(name="dynamo")
    assert told["compiles"]["duration_us"].sum() == pytest.approx(phases["duration_us"].sum())


def test_of_what_the_file_lacks_there_is_no_table(events):
    told, _ = read(chromium.read_stream, json.dumps(events).encode())
    assert not told.has("graph_breaks")
    assert not told.has("recompiles")


def test_a_cut_file_and_a_broken_event_are_counted(events):
    text = json.dumps(events).encode()
    told, damage = read(chromium.read_stream, text[: len(text) // 2])
    assert told["compile_phases"].height > 0
    assert set(damage.frame("")["kind"]) == {"truncated"}
    broken = json.dumps(events[:20]).replace('"ts"', '"ts": nonsense, "x"', 1).encode()
    _, damage = read(chromium.read_stream, broken)
    assert set(damage.frame("")["kind"]) == {"bad_json"}


@pytest.mark.parametrize("stray", [b"}", b"]", b"}}]"])
def test_a_bracket_that_closes_nothing_costs_only_itself(events, stray):
    text = json.dumps(events).encode()
    middle = text.index(b"}, {", len(text) // 2) + 1
    pieces = list(objects(text[1:middle] + stray + text[middle:-1]))
    assert len(pieces) == len(events) + len(stray)
    assert max(map(len, pieces)) == max(map(len, objects(text[1:-1])))
