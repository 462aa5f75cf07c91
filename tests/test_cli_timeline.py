"""``traceview timeline``: what it writes, and that it replaces nothing unasked."""

import gzip
import json

import pytest
from cli_runs import Cli
from recordings import unpack


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return unpack("bad-gb_item", tmp_path_factory.mktemp("timeline"))


def test_a_file_that_perfetto_reads_and_one_sentence(cli, run, tmp_path):
    assert cli("timeline", run, "-o", tmp_path / "t.json").code == 0
    trace = json.loads((tmp_path / "t.json").read_text())
    names = {event["name"] for event in trace["traceEvents"]}
    assert {"dynamo", "inductor_compile", "step 0", "compiled block, pair 0"} <= names
    spans = sum(event["ph"] == "X" for event in trace["traceEvents"])
    assert cli.out.startswith(f"Wrote {spans:,} spans of 1 process to ")
    assert cli.out.count("\n") == 1


def test_a_name_in_gz_is_packed(cli, run, tmp_path):
    cli("timeline", run, "-o", tmp_path / "t.json.gz")
    assert json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]


def test_nothing_is_replaced_unless_forced(cli, run, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text("precious")
    assert cli("timeline", run, "-o", file).code == 2
    assert "already exists" in cli.err
    assert file.read_text() == "precious"
    assert cli("timeline", run, "-o", file, "--force").code == 0
    assert json.loads(file.read_text())


def test_a_place_that_cannot_be_written_is_said(cli, run, tmp_path):
    assert cli("timeline", run, "-o", tmp_path / "no" / "such" / "t.json").code == 2
    assert "can't be written" in cli.err
