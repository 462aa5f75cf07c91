"""One limit for each dimension of an input: what is beyond is counted, the rest is read."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from logs import read, structured, tar_of, textlog, zip_of
from msgspec import structs
from reading import counts, tables_of
from recordings import unpack

from traceview import limits
from traceview.cli import traceview
from traceview.errors import UsageError
from traceview.inputs import find
from traceview.limits import Limits, check_depth, used, with_given
from traceview.parse import beside
from traceview.parse.keys import CompileKeys
from traceview.parse.messages.finding import Blocks

TRACE = {
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op{n}", "pid": 1, "tid": 1, "ts": n, "dur": 1}
        for n in range(30)
    ]
}
MARK = b"[rank0]: "


def prefixed(log):
    return b"".join(MARK + line for line in log.splitlines(keepends=True))


LOGS = {
    "structured": structured("breaks"),
    "text": textlog(),
    "prefixed text": prefixed(textlog()),
    "trace": json.dumps(TRACE).encode(),
    "events": b"".join(b'{"event": "step", "t": %d}\n' % n for n in range(50)),
}


@pytest.mark.parametrize(
    ("log", "values", "kind", "table"),
    [
        ("structured", {"records": 40}, "too_many_records", "compiles"),
        ("structured", {"record": 2000}, "too_long", "log_records"),
        ("structured", {"rows": 3}, "too_many_rows", "log_records"),
        ("text", {"records": 30}, "too_many_records", "recompiles"),
        ("trace", {"events": 20}, "too_many_events", "cpu_ops"),
        ("trace", {"names": 20}, "too_many_names", "cpu_ops"),
        ("trace", {"rows": 20}, "too_many_rows", "cpu_ops"),
        ("events", {"records": 20}, "too_many_records", "runs"),
    ],
)
def test_what_is_beyond_a_limit_is_counted_and_the_rest_is_read(
    tmp_path, limit, log, values, kind, table
):
    tables, damage = tables_of(tmp_path / "log", LOGS[log])
    assert kind not in counts(damage)
    limit(**values)
    fewer, damage = _read_with_rows(tmp_path / "log", LOGS[log])
    assert counts(damage)[kind][0] >= 1
    assert 0 < fewer[table].height <= tables[table].height


def _read_with_rows(path, data):
    """As a reader does it, which keeps to the rows of a table."""
    from traceview.parse.damage import Damage
    from traceview.reading.mapping import Log, _fitting, parse

    path.write_bytes(data)
    tables, damage = {}, Damage()
    (source,) = find([str(path)]).sources
    log = Log(source, "logs", damage)
    for name, frame in _fitting(parse(log), log):
        tables[name] = frame if name not in tables else tables[name].vstack(frame)
    return tables, damage


def test_a_long_line_is_cut(tmp_path, limit):
    limit(line=4000, text=1000)
    log = textlog() + b"x" * 600_000 + b"\n" + textlog("training")
    tables, _ = tables_of(tmp_path / "log", log)
    assert tables["recompiles"].height > 3
    log = structured("breaks")
    tables, _ = tables_of(tmp_path / "log", log)
    assert max(tables["graphs"]["text"].str.len_chars()) < 1100


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"files": 3}, "too_many_files"),
        ({"unpacked": 700_000}, "too_much_unpacked"),
        ({"members": 2}, "too_many_members"),
        ({"bomb": 100_000, "ratio": 3}, "unpacks_too_far"),
    ],
)
def test_files_and_archives_have_limits(tmp_path, limit, values, kind):
    folder, scratch = tmp_path / "logs", tmp_path / "scratch"
    for made in (folder, scratch):
        made.mkdir()
    for number in range(4):
        (folder / f"{number}.log").write_bytes(b"%d\n" % number + structured())
    files = {f"{n}.log": b"%d\n" % (n + 9) + structured() for n in range(5)}
    (folder / "a.zip").write_bytes(zip_of(files))
    whole = find([str(folder)], scratch)
    assert (len(whole.sources), whole.damaged) == (9, [])
    limit(**values)
    found = find([str(folder)], scratch)
    assert kind in {entry.kind for entry in found.damaged}
    assert 2 <= len(found.sources) <= 9


def test_archives_in_archives_have_a_limit_that_can_be_raised(tmp_path, limit):
    inner = tar_of({"a.log": structured()})
    for _ in range(3):
        inner = tar_of({"inner.tar": inner})
    path = tmp_path / "x.tar"
    path.write_bytes(inner)
    assert find([str(path)]).sources == []
    limit(archives=4)
    (source,) = find([str(path)]).sources
    assert read(source) == structured()


@pytest.mark.parametrize("deep", [b"[" * 201 + b"]" * 201, b'{"a":' * 250 + b"1" + b"}" * 250])
def test_nesting_has_a_limit(deep):
    check_depth(b'{"a": "' + b"[" * 500 + b'", "b": [[1]]}')
    check_depth(b"[{}]" * 1000)
    with pytest.raises(ValueError, match="200"):
        check_depth(deep)


def test_a_deep_or_long_value_costs_its_record(tmp_path):
    log = structured("breaks")
    first, _, _ = log.partition(b"\n")
    for bad in (b"[" * 300 + b"]" * 300, b"9" * 5000):
        tables, damage = tables_of(
            tmp_path / "log", log + bad.join([first[:-1] + b', "x": ', b"}\n"])
        )
        assert tables["compiles"].height > 0
        assert "reader_failed" not in counts(damage)


def test_processes_beyond_the_limit_are_counted_record_by_record(tmp_path, limit):
    one, other = structured("breaks"), structured("resets")
    (pid,) = {line.split(b" ")[2] for line in one.splitlines() if line.startswith(b"V")}
    other = re.sub(rb"(?m)^(V\d{4} \S+) \d+ ", rb"\1 %d " % (int(pid) + 1), other)
    alone, _ = tables_of(tmp_path / "one.log", one)
    limit(processes=1)
    both, damage = tables_of(tmp_path / "both.log", one + other)
    assert both["compiles"].drop("raw_file").equals(alone["compiles"].drop("raw_file"))
    records = sum(line.startswith(b"V") for line in other.splitlines())
    assert counts(damage)["too_many_processes"][0] == records


def test_ranks_beyond_the_limit_are_not_remembered(limit):
    limit(ids=2)
    keys = CompileKeys("logs")
    for pid in range(4):
        keys.learn_rank(pid, pid)
    assert [keys.rank(pid) for pid in range(4)] == [0, 1, None, None]


def test_of_a_line_beyond_the_limit_no_more_is_held(limit):
    limit(line=400_000)
    log = b"first\n" + b"x" * 3_000_000 + b"\nlast\n"
    given = b"".join(block.data for block in Blocks(io.BytesIO(log)))
    assert given.strip().startswith(b"first")
    assert given.strip().endswith(b"last")
    assert 400_000 < len(given) < 1_000_000


def test_a_number_of_more_digits_costs_its_event(tmp_path):
    long = json.dumps(TRACE).replace('"ts": 7', '"args": {"External id": %s}, "ts": 7')
    trace = (long % ("9" * 1200)).encode()
    for digits, known in ((1500, 30), (1000, 29)):
        with used(structs.replace(limits.now, digits=digits)):
            tables, damage = tables_of(tmp_path / "t.json", trace)
        assert tables["cpu_ops"].height == known
        assert counts(damage).get("bad_json", (0,))[0] == 30 - known


def test_limits_are_given_by_name():
    given = with_given(["memory=8G", "seconds = 600", "page=3MB", "unpacked=2TiB", "ids=0"])
    assert (given.memory, given.seconds, given.page) == (8 << 30, 600, 3 << 20)
    assert (given.unpacked, given.ids, given.names) == (2 << 40, 1, limits.now.names)
    for wrong in ("memory", "memory=", "memory=-1", "memory=1.5", "memory=8Q", "depths=3", "=3"):
        with pytest.raises(UsageError, match="limit"):
            with_given([wrong])


@pytest.mark.parametrize("text", ["", "8X", "-1", "1e3", "G", "many", "1.2.3", "1.5", "1.5B"])
def test_what_is_no_number_is_none(text):
    assert limits.number(text) is None


def test_a_process_that_reads_ahead_gets_the_limits():
    code = "from traceview import limits; print(limits.now.names, limits.now.ids)"
    with used(structs.replace(limits.now, names=77)):
        variables = {**os.environ, **limits.as_variable()}
    for variable, said in ((variables[limits.VARIABLE], "77 100000"), ("{]", "50000 100000")):
        environment = {**variables, limits.VARIABLE: variable}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert done.stdout.strip() == said
    assert beside.limits is limits


@pytest.mark.live
@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_and_its_readers_keep_to_given_limits(tmp_path, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(gzip.compress(LOGS["trace"] + name.encode()))
    words = ["postmortem", "-o", "out", "--workers", str(workers), "--limit", "events=5"]
    done = CliRunner().invoke(
        traceview, [*words, "--limit", "page=100", "--json", "a.json", "b.json"]
    )
    assert done.exit_code == 0
    rows = json.loads(done.stdout)["reading"]["rows"]
    assert {(row["kind"], row["times"]) for row in rows} == {("too_many_events", 25)}
    assert limits.now == Limits()


@pytest.mark.live
def test_a_report_reads_again_under_given_limits(tmp_path):
    for name, words, unread in (("a", [], False), ("b", ["--limit", "events=5"], True)):
        run = unpack("bad-gb_item", tmp_path / name)
        done = CliRunner().invoke(traceview, ["report", "--json", "--refresh", *words, str(run)])
        assert done.exit_code == 0
        rows = json.loads(done.stdout)["reading"]["rows"]
        assert any(row["kind"] == "too_many_events" for row in rows) == unread
    assert limits.now == Limits()


def test_the_docs_list_every_limit_with_its_default():
    text = (Path(__file__).resolve().parents[2] / "docs" / "inputs.md").read_text()
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    named = {row[1].strip(" `"): row[3].strip().replace(",", "") for row in rows if len(row) == 6}
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    for name in Limits.__struct_fields__:
        number, _, unit = named.pop(name).partition(" ")
        if name not in ("memory", "events"):
            assert int(number) * units.get(unit, 1) == getattr(Limits(), name), name
    assert named == {}
