"""Whatever a path looks like it is only a name; and streams, limits and manifests that are odd."""

import gzip
import itertools
import json
import os
import re
import shlex
import subprocess
import tempfile

import pytest
from cli_runs import Cli, command
from mutation_fixtures import log
from recordings import unpack

#: A column of Hive's, patterns, a URL, bytes that are no UTF-8.
NAMES = ("lr=0.1", "pass=x", "run[1]", "a*b", "{x}", "job::1", os.fsdecode(b"n\xff"))


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_bytes(log("structured/breaks"))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_have_any_name(cli, tmp_path, logs, monkeypatch, name):
    folder = tmp_path / name
    folder.mkdir()
    cli("postmortem", "--workers", 1, logs, "-o", tmp_path / "plain", "--json")
    plain = json.loads(cli.out)["compile_time"]
    monkeypatch.chdir(folder)
    logs.rename("logs")
    assert cli("postmortem", "--workers", 1, "logs", "-o", "out", "--json").code == 0
    assert json.loads(cli.out)["compile_time"] == plain
    assert cli("report", folder / "out").code == 0
    assert cli("check", folder / "out", "--max-breaks", 1000).code == 0
    monkeypatch.chdir(tmp_path)
    assert cli("postmortem", "--workers", 1, name, "-o", "again", "--json").code == 0
    assert json.loads(cli.out)["compile_time"] == plain


@pytest.mark.parametrize("name", ["lr=0.1", "run[1]"])
def test_the_temporary_folder_may_have_any_name(cli, tmp_path, logs, monkeypatch, name):
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert cli("compare", logs, logs / "a.log").code == 0
    assert cli("check", logs, "--max-breaks", 1000).code == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["lr=0.1", "run[1]", NAMES[-1]])
def test_a_run_folder_may_have_any_name(cli, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    run = unpack("good-gb_item", folder)
    assert cli("report", run).code == 0
    assert cli("report", run, "--json").code == 0  # from the tables that the first one kept


def test_a_log_whose_name_is_no_utf8_is_one_of_the_job(cli, tmp_path, logs):
    (logs / os.fsdecode(b"\xffb.log")).write_bytes(log("structured/autograd"))
    (logs / os.fsdecode(b"\xffc.txt")).write_bytes(b"nothing of torch's\n")
    out = tmp_path / "out"
    assert cli("postmortem", "--workers", 1, logs, "-o", out, "--json").code == 0
    names = [file["name"] for file in json.loads(cli.out)["job"]["files"]]
    assert sorted(names) == [
        "a.log",
        "\N{REPLACEMENT CHARACTER}b.log",
        "\N{REPLACEMENT CHARACTER}c.txt",
    ]
    missing = os.fsdecode(b"no\xff")
    assert cli("postmortem", missing, "-o", tmp_path / "none").code == 4


def shell(line, **variables):
    """Exit code and stderr of a line of a shell's, in which ``traceview`` is a command of ours."""
    line = line.replace("traceview", shlex.join(command()))
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, check=False, env=os.environ | variables
    )
    assert b"Traceback" not in done.stdout + done.stderr
    return done


@pytest.mark.live
def test_streams_that_are_closed_or_speak_latin_1(tmp_path, logs):
    out = shlex.quote(str(tmp_path / "out"))
    assert shell(f"traceview postmortem --workers 1 {logs} -o {out} <&-").returncode == 0
    assert shell(f"traceview postmortem - -o {out}-2 <&-").returncode == 4
    assert shell(f"traceview report {out} >&-").returncode == 0
    assert shell(f"traceview check {out} --max-breaks 1000 2>&-").returncode == 0
    for options in ("", "--markdown", "--json"):
        done = shell(f"traceview report {options} {out}", PYTHONIOENCODING="latin-1")
        assert done.returncode == 0
        assert done.stdout


@pytest.mark.live
def test_a_limit_on_the_size_of_files_ends_in_a_sentence(tmp_path, logs):
    for blocks in (0, 1, 16):
        out = tmp_path / f"out-{blocks}"
        done = shell(f"ulimit -f {blocks}; traceview postmortem --workers 1 {logs} -o {out}")
        assert done.returncode == 2
        assert done.stderr.startswith(b"traceview: ")


def test_a_post_mortem_that_was_not_read_to_its_end_says_so(cli, tmp_path, logs):
    out = tmp_path / "out"
    cli("postmortem", "--workers", 1, logs, "-o", out)
    (out / "tables" / "inputs.parquet").write_bytes(b"PAR1")
    assert cli("report", out).code == 4
    assert "not read to its end" in cli.err
    (out / "tables" / "inputs.parquet").unlink()
    assert cli("check", out, "--max-breaks", 1).code == 4


def test_a_manifest_names_what_is_no_utf8(cli, tmp_path):
    run = unpack("good-gb_item", tmp_path)
    path = run / "run.json"
    path.write_text(path.read_text().replace('"gb_item.py"', '"gb\\udcff.py"'))
    for words in (["report"], ["check", "--max-breaks", 9, "--format", "sarif"], ["compare", run]):
        assert cli(*words, run).code == 0
    assert "gb?.py" in (run / "report.html").read_text()


MANIFESTS = (
    {"target": [None]},
    {"target": 1},
    {"nproc": "many"},
    {"passes": [[]]},
    {"passes": [{"name": "cold", "raw": 1.5}]},
    {"passes": [{"name": "cold", "raw": "../elsewhere"}]},
    {"passes": [{"name": "cold", "raw": "raw/cold", "environment": {"TORCH_LOGS": 3}}]},
    {"options": "[" * 20_000 + "]" * 20_000},
)


@pytest.mark.parametrize("change", MANIFESTS, ids=lambda change: str(change)[:40])
def test_a_manifest_with_other_types_is_none(cli, tmp_path, change):
    path = tmp_path / "run.json"
    manifest = {"format": 1, "traceview": "0", "passes": [], **change}
    text = json.dumps(manifest).replace('"[', "[").replace(']"', "]")
    path.write_text(text)
    for words in (["report"], ["check", "--max-breaks", 1], ["compare", tmp_path]):
        assert cli(*words, tmp_path).code == 4
        assert "can't be read as a run's manifest" in cli.err


@pytest.mark.parametrize("depth", [500, 1000, 200_000])
def test_an_event_that_nests_too_deeply_costs_itself_alone(cli, tmp_path, depth):
    deep = "[" * depth + "]" * depth
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::op{n}", "pid": 1, "tid": 1, "ts": n, "dur": 1}
        for n in range(3)
    ]
    texts = [json.dumps(event) for event in events]
    texts[1] = texts[1][:-1] + f', "args": {{"Input Dims": {deep}, "other": {deep}}}}}'
    trace = '{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(texts) + "\n]}"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "t.json.gz").write_bytes(gzip.compress(trace.encode()))
    (tmp_path / "logs" / "a.log").write_bytes(log("structured/autograd"))
    out = tmp_path / "out"
    assert cli("postmortem", "--workers", 1, tmp_path / "logs", "-o", out).code == 0
    sql = "select name from cpu_ops order by name"
    found = cli("query", out, sql, "--format", "csv").out.split()
    assert {"aten::op0", "aten::op2"} <= set(found)


def test_a_nameless_range_of_the_users_is_reported(cli, tmp_path):
    """``with record_function(""):`` around the steps."""
    run = unpack("good-gb_item", tmp_path)
    for trace in run.glob("raw/cold/profile/*.json.gz"):
        text = gzip.decompress(trace.read_bytes())
        key, *rest = re.split(rb'"name": "[^"]*"', text)
        assert len(rest) > 20
        names = itertools.cycle((b'"name": ""', b'"nale": "x"', b'"name": "aten::mul"'))
        trace.write_bytes(gzip.compress(key + b"".join(map(bytes.__add__, names, rest))))
    assert cli("report", run).code == 0


def test_a_url_that_is_not_usable_is_named_without_its_password(cli, tmp_path):
    url = "nothing-known://me:hunter2@host/logs"
    run = cli("postmortem", "--workers", 1, url, "-o", tmp_path / "out")
    assert run.code == 2
    assert "nothing-known://me:<masked>@host/logs can't be opened" in run.err
    assert "hunter2" not in run.err
