"""Commands that only read, on recorded runs: report, tables, query, rules, explain."""

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from cli_runs import Cli, command
from recordings import unpack

from traceview.diagnosis.contract import schema


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return unpack("bad-gb_item", tmp_path_factory.mktemp("gb_item"))


@pytest.fixture
def run(tmp_path):
    return unpack("bad-gb_item", tmp_path)


def test_report_prints_the_verdict_and_writes_the_page(cli, shared):
    cli("report", shared)
    assert cli.code == 0
    assert "TV101" in cli.out
    assert cli.out.rstrip().endswith(
        f"try what the findings advise: traceview try {shared}\nreport: {shared / 'report.html'}"
    )
    assert "\x1b" not in cli.out
    assert "TV101" in (shared / "report.html").read_text()
    assert list(shared.glob(".*.part")) == []


def test_json_is_one_document_that_fits_its_schema(cli, shared):
    cli("report", "--json", shared)
    document = json.loads(cli.out)
    jsonschema.validate(document, schema())
    assert json.loads((shared / "diagnosis.json").read_text()) == document
    assert "report.html" in cli.err


def test_markdown_is_alone_on_stdout(cli, shared):
    cli("report", "--markdown", shared)
    assert cli.code == 0
    assert "TV101" in cli.out
    assert "report: " not in cli.out


def test_two_forms_at_once_are_refused(cli, shared):
    assert cli("report", "--json", "--markdown", shared).code == 2
    assert "can't be combined" in cli.err


def test_job_steps_reach_the_diagnosis(cli, tmp_path):
    cli("report", "--json", "--job-steps", "100", unpack("gpu-pointwise", tmp_path))
    (rule,) = [f for f in json.loads(cli.out)["findings"] if f["rule"] == "bm-no-break-even"]
    assert rule["severity"] == "warning"


def test_a_run_that_failed_ends_in_three(cli, tmp_path):
    folder = unpack("gpu-cudagraph_overwritten", tmp_path)
    assert cli("report", folder).code == 3
    assert "The script raised RuntimeError" in cli.out.splitlines()[0]


def test_a_folder_that_is_no_run(cli, tmp_path):
    assert cli("report", tmp_path).code == 4
    assert "is not a run folder" in cli.err
    assert len(cli.err.splitlines()) == 2


@pytest.mark.parametrize("words", [["report"], ["tables"], ["query", "select 1"]])
@pytest.mark.parametrize("emptied", [True, False], ids=["empty", "missing"])
def test_a_run_without_a_byte_to_read(cli, run, words, emptied):
    for path in (run / "raw").rglob("*"):
        if path.is_file() and emptied:
            path.write_bytes(b"")
        elif path.is_file():
            path.unlink()
    assert cli(words[0], run, *words[1:]).code == 4
    assert "missing or empty" in cli.err


def test_a_page_that_cannot_be_written_takes_nothing_from_the_terminal(cli, run):
    (run / "report.html").mkdir()
    (run / "tables").write_text("a file where a folder should be")
    assert cli("report", run).code == 2
    assert "TV101" in cli.out
    assert "report.html could not be written" in cli.err
    assert cli("report", "--json", run).code == 0
    assert json.loads(cli.out)["format"] == 2
    assert "report.html could not be written" in cli.err


def test_open_without_a_browser(cli, shared, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli("report", "--open", shared).code == 0
    assert "open it by hand" in cli.err


def test_open_starts_the_browser_on_the_page(cli, shared, tmp_path, monkeypatch):
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr("click.launch", lambda url: subprocess.call([opener, url]))
    assert cli("report", "--open", shared).code == 0
    assert (tmp_path / "opened").read_text().strip() == (shared / "report.html").as_uri()


def test_query_formats(cli, shared):
    sql = "select stance, count(*) as n from blocks group by stance order by stance"
    assert cli("query", shared, sql).out.endswith("(2 rows)\n")
    rows = json.loads(cli("query", "--format", "json", shared, sql).out)
    assert [row["stance"] for row in rows] == ["compiled", "eager"]
    assert cli("query", "--format", "csv", shared, sql).out.startswith("stance,n\ncompiled,")


@pytest.mark.parametrize(
    ("sql", "said"),
    [("select nothing from blocks", "Columns are"), ("selec", "Tables are"),
     ("select * from no_such", "Tables are")],
)  # fmt: skip
def test_query_errors_name_what_there_is(cli, shared, sql, said):
    assert cli("query", shared, sql).code == 2
    assert said in cli.err


def test_tables_tells_rows_columns_and_meaning(cli, shared):
    assert cli("tables", shared).code == 0
    assert "graph_breaks (" in cli.out
    assert "cudagraph_events" in cli.out


def test_rules_and_explain(cli):
    rules = json.loads(cli("rules", "--json").out)
    assert {"code", "rule", "finds", "needs", "severities", "settings", "origin"} <= set(rules[0])
    assert len(cli("rules").out.splitlines()) == len(rules)
    assert cli("rules", "nothing").code == 2
    assert cli("explain", "gb-item").out == cli("explain", "tv101").out != ""
    assert cli("explain", "gb-nothing").code == 2
    assert "no rule called gb-nothing" in cli.err


def test_usage(cli):
    assert cli("--version").out.startswith("traceview")
    assert cli("--help").code == 0
    assert cli("diagnoze").code == 2
    assert cli("diagnose").code == 2
    assert "No script was given" in cli.err
    assert cli("diagnose", "--blocks", "0", "x.py").code == 2
    assert cli("demo", "nothing").code == 2
    assert "graph-break" in cli.err
    listed = cli("demo", "--list").out.splitlines()
    assert [line.split()[0] for line in listed][-1] == "recompile"


@pytest.mark.live
def test_a_reader_that_goes_away(shared):
    process = subprocess.Popen(
        command("tables", shared), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


@pytest.mark.live
def test_a_full_disk_is_one_sentence(shared):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("tables", shared), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert b"The disk is full" in done.stderr
    assert b"Traceback" not in done.stderr


def test_ctrl_c_outside_of_a_target(cli, shared, monkeypatch):
    def interrupted(run, refresh):
        raise KeyboardInterrupt

    monkeypatch.setattr("traceview.parse.load_or_parse", interrupted)
    assert cli("tables", shared).code == 130
    assert cli.err.strip() == ""
