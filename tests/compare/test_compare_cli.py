"""``traceview compare``: what it takes for a run, its forms, and what it refuses."""

import json

import pytest
from cli_runs import Cli
from recordings import diagnosis_of, unpack
from sides import of_format_1

from traceview.contracts import text_of
from traceview.diagnosis import to_json


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return unpack("bad-gb_item", tmp_path_factory.mktemp("bad"))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return unpack("good-gb_item", tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The same two as diagnoses in JSON, which are compared in a moment."""
    folder = tmp_path_factory.mktemp("documents")
    for name in ("bad", "good"):
        text = text_of(to_json(diagnosis_of(f"{name}-gb_item")))
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder / "bad.json", folder / "good.json"


def test_two_run_folders(cli, bad, good):
    cli("compare", bad, good)
    assert cli.code == 0
    assert "− went: warning TV101" in cli.out
    assert cli.err == ""


def test_a_diagnosis_in_json_in_place_of_a_run(cli, bad, good, tmp_path):
    cli("report", "--json", bad)
    for path in (tmp_path / "old.json", tmp_path / "diagnosis.json"):
        path.write_text(cli.out)
    for name in (tmp_path / "old.json", tmp_path):
        document = json.loads(Cli.__call__(cli, "compare", "--json", name, good).out)
        assert document["before"]["kind"] == "diagnosis"
        assert [c["change"] for c in document["causes"] if c["rule"] == "gb-item"] == ["went"]


def test_a_report_page_stands_for_its_run(cli, bad, good):
    (bad / "report.html").touch()
    assert cli("compare", bad / "report.html", good).code == 0
    assert "− went: warning TV101" in cli.out


def test_logs_are_read_as_a_post_mortem(cli, bad, good):
    cli("compare", "--json", bad / "raw/cold/structured", good / "raw/cold/structured")
    assert cli.code == 0
    document = json.loads(cli.out)
    assert document["before"]["kind"] == "postmortem"
    assert ("gb-item", "went") in {(c["rule"], c["change"]) for c in document["causes"]}
    assert document["environment"] == [] or document["environment"][0]["section"] != "variables"


@pytest.mark.parametrize(
    ("option", "ending", "begins"),
    [("--html", ".html", "<!doctype"), ("--markdown", ".md", "## "), ("--json", ".json", "{")],
)
def test_forms_on_stdout_and_in_a_file(cli, documents, tmp_path, option, ending, begins):
    assert cli("compare", option, *documents).out.lstrip().startswith(begins)
    page = tmp_path / f"page{ending}"
    assert cli("compare", "-o", page, *documents).out == ""
    assert page.read_text().lstrip().startswith(begins)
    assert f"written to {page}" in cli.err


def test_rules_are_chosen(cli, bad, good):
    cli("compare", "--json", "--ignore", "gb", bad, good)
    assert "gb-item" not in {c["rule"] for c in json.loads(cli.out)["causes"]}


def test_what_is_refused(cli, documents, tmp_path):
    bad, _ = documents
    assert cli("compare", "--json", "--html", bad, bad).code == 2
    assert "can't be combined" in cli.err
    assert cli("compare", bad, tmp_path / "nothing").code == 2
    assert "does not exist" in cli.err
    assert cli("compare", "-o", tmp_path / "no" / "page.html", bad, bad).code == 2
    assert "can't be written" in cli.err
    assert cli("compare", bad).code == 2


def test_a_diagnosis_of_format_1(cli, documents, tmp_path):
    bad, good = documents
    old = tmp_path / "old.json"
    old.write_text(json.dumps(of_format_1(json.loads(bad.read_text()))))
    new = json.loads(cli("compare", "--json", bad, good).out)
    assert cli("compare", "--json", old, good).code == 0
    found = json.loads(cli.out)
    for document in (new, found):
        del document["before"]["name"]
    assert found == new
    for option in ("--html", "--markdown"):
        assert cli("compare", option, old, good).code == 0


@pytest.mark.parametrize(
    "text",
    ['{"format": 1, "verdict": 3}', '{"verdict": {}, "format": 2}', "[" * 100_000, "{}", "\x00",
     '{"format": 1, "verdict": {"outcome": "helped", "sentence": NaN}}', ""],
)  # fmt: skip
def test_json_that_is_no_diagnosis(cli, documents, tmp_path, text):
    path = tmp_path / "diagnosis.json"
    path.write_text(text)
    assert cli("compare", documents[0], tmp_path).code == 4
    assert len(cli.err.splitlines()) == 2


HOSTILE = {
    "frames": [{"co_name": 3, "total_s": "x", "co_firstlineno": 1e400}, {"total_s": True}],
    "pairs": [{"used": True, "eager_ms": -1, "compiled_ms": "x"}, {"used": 1}],
    "environment": {"argv": 3, "cwd": [], "settings": [3, {"name": []}], "variables": "x"},
}


def test_values_of_any_type_where_the_model_does_not_say(cli, documents, tmp_path):
    bad, good = documents
    data = json.loads(bad.read_text())
    data["compile_time"]["frames"] = HOSTILE["frames"]
    data["pairs"] = HOSTILE["pairs"]
    data["environment"] = HOSTILE["environment"]
    data["findings"][0]["location"]["line"] = -(10**12)
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(data))
    for option in ("--json", "--html", "--markdown"):
        assert cli("compare", option, path, good).code == 0
        assert cli("compare", option, good, path).code == 0
    assert cli("check", "--max-breaks", "9", "--format", "sarif", path).code in (0, 1)
