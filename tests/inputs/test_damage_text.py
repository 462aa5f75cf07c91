"""Damage to text logs and profiler traces, and lines without end in bounded memory."""

import gzip
import subprocess
import sys

import pytest
from logs import structured, textlog
from mutation_fixtures import log as fixture
from reading import counts, lost, tables_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return tables_of(tmp_path_factory.mktemp("clean") / "log", textlog())[0]


def test_foreign_lines_in_a_text_log_cost_nothing(path, whole):
    lines = textlog().splitlines(keepends=True)
    woven = b"".join(line + b"epoch 3 loss 0.1\n" * (n % 3 == 0) for n, line in enumerate(lines))
    tables, _ = tables_of(path, woven)
    assert not lost(whole, tables)


@pytest.mark.parametrize("bad", [b"\xff\xfe\n", b"\0" * 4096 + b"\n", b"\r\n", b"\x1b[31m\n"])
def test_bytes_that_are_no_text_between_lines(path, whole, bad):
    lines = textlog().splitlines(keepends=True)
    lines.insert(len(lines) // 2, bad)
    tables, _ = tables_of(path, b"".join(lines))
    assert not lost(whole, tables)


def test_a_text_log_converted_to_crlf(path, whole):
    tables, _ = tables_of(path, textlog().replace(b"\n", b"\r\n"))
    assert not lost(whole, tables)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_text_log_cut_anywhere(path, whole, share):
    data = textlog()
    cut = data[: int(len(data) * share)]
    tables, damage = tables_of(path, cut)
    up_to_here, _ = tables_of(path, cut[: cut.rfind(b"\n") + 1])
    assert sum(lost(up_to_here, tables).values()) <= 1
    assert set(counts(damage)) <= {"truncated"}


def test_a_packed_text_log_that_is_cut(path, whole):
    packed = gzip.compress(textlog())
    tables, damage = tables_of(path, packed[: len(packed) * 2 // 3])
    assert "truncated" in counts(damage)
    assert tables["recompiles"].height > 0


def test_a_trace_cut_anywhere(path):
    data = fixture("kineto/trace")
    clean, _ = tables_of(path, data)
    tables, damage = tables_of(path, data[: len(data) * 2 // 3])
    assert counts(damage)["truncated"][0] == 1
    assert tables["cpu_ops"].height > clean["cpu_ops"].height / 2


def test_a_damaged_event_costs_itself(path):
    data = fixture("kineto/trace")
    clean, _ = tables_of(path, data)
    middle = data.index(b'"dur"', len(data) // 2)
    tables, damage = tables_of(path, data[:middle] + b'"dur": oops,\x00' + data[middle:])
    before, after = (t["cpu_ops"].height for t in (clean, tables))
    assert damage.total == 1
    assert before - after <= 1


#: More than any limit of a reader, less than a minute of a busy machine.
LINE_BYTES = 1 << 27
LONG = """
import sys, resource
from pathlib import Path
from traceview.inputs import find
from traceview.parse.damage import Damage
from traceview.reading.mapping import Log, parse
damage = Damage()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(source,) = find([sys.argv[1]]).sources
rows = {}
for name, frame in parse(Log(source, "logs", damage)):
    rows[name] = rows.get(name, 0) + frame.height
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(source.kind, more // 1024, rows.get(sys.argv[2], 0), damage.total)
"""


@pytest.mark.live
@pytest.mark.parametrize(
    ("name", "table"),
    [("structured", "compiles"), ("textlog", "recompiles"), ("prefixed", "compiles")],
)
def test_a_line_without_end_costs_bounded_memory_and_hides_nothing_behind_it(path, name, table):
    data = {"structured": structured(), "textlog": textlog()}.get(name) or b"".join(
        b"pod-1 | " + line for line in structured().splitlines(keepends=True)
    )
    with path.open("wb") as file:
        file.write(data)
        file.write(b"x" * 100)
        file.seek(LINE_BYTES, 1)  # a hole: NUL bytes that take no room on the disk
        file.write(b"\n" + data)
    done = subprocess.run(
        [sys.executable, "-c", LONG, str(path), table], capture_output=True, text=True, check=True
    )
    kind, megabytes, rows, _ = done.stdout.split()
    clean, _ = tables_of(path, data)
    assert kind == ("stderr" if name == "textlog" else "structured")
    assert int(megabytes) < 400
    assert int(rows) > clean[table].height
