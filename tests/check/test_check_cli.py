"""``traceview check``: exit codes, settings in pyproject.toml, files."""

import json

import pytest
from cli_runs import Cli
from recordings import diagnosis_of, unpack
from sides import of_format_1

from traceview.contracts import text_of
from traceview.diagnosis import to_json


@pytest.fixture
def cli(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    return Cli(monkeypatch, capfd)


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return unpack("bad-gb_item", tmp_path_factory.mktemp("bad"))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return unpack("good-gb_item", tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The same two as diagnoses in JSON, which are read in a moment."""
    folder = tmp_path_factory.mktemp("documents")
    for name in ("bad", "good"):
        text = text_of(to_json(diagnosis_of(f"{name}-gb_item")))
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder / "bad.json", folder / "good.json"


def test_exit_codes_of_runs(cli, bad, good):
    assert cli("check", good, "--max-breaks", 0, "--max-recompiles", 2).code == 0
    assert cli.out == "passed: 2 limits hold\n"
    assert cli("check", bad, "--no", "new-findings", "--baseline", good).code == 1


def test_exit_codes_of_documents(cli, documents):
    bad, good = documents
    assert cli("check", good, "--max-breaks", 0, "--max-recompiles", 2).code == 0
    assert cli("check", bad, "--max-breaks", 0, "--max-recompiles", 2).code == 1
    assert len(cli.out.splitlines()) == 1
    assert cli("check", bad, "--no", "new-findings", "--baseline", good).code == 1
    assert cli("check", good, "--no", "new-findings,errors", "--baseline", bad).code == 0


def test_a_run_and_a_baseline_of_format_1(cli, documents, tmp_path):
    for path in documents:
        old = of_format_1(json.loads(path.read_text()))
        (tmp_path / path.name).write_text(json.dumps(old))
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    assert cli("check", good, "--max-breaks", 0, "--min-speedup", 0.1).code == 0
    assert cli("check", bad, "--max-breaks", 0).code == 1
    assert cli.out.startswith("max-breaks: Graph breaks: 1, at most 0 allowed")
    assert cli("check", bad, "--no", "new-findings", "--baseline", good).code == 1
    assert cli("check", good, "--no", "new-findings", "--baseline", bad).code == 0


def test_what_was_not_measured_passes_only_where_that_is_allowed(cli, bad):
    asked = ("check", bad, "--max", "warm_compile_seconds=1")
    assert cli(*asked).code == 1
    assert cli(*asked, "--missing", "fail").code == 1
    assert cli(*asked, "--missing", "skip").code == cli(*asked, "--allow-missing").code == 0
    assert "1 not checked" in cli.out


def test_a_gate_without_limits_is_no_gate(cli, bad):
    assert cli("check", bad).code == 2
    assert "no limit was given" in cli.err
    assert cli("check", bad, "--no", "new-findings").code == 2
    assert "need a baseline" in cli.err
    assert cli("check", bad, "--max", "kernels").code == 2
    assert "NAME=N" in cli.err
    assert cli("check", bad, "--max-breaks", "x").code == 2


TOML = """\
[tool.traceview.check]
max-breaks = 0
max-findings = 9
baseline = "old"
"""


def test_settings_of_the_project(cli, bad, good, tmp_path):
    (tmp_path / "pyproject.toml").write_text(TOML)
    (tmp_path / "old").symlink_to(good)
    assert cli("check", bad).code == 1
    assert cli("check", bad, "--max-breaks", 1).code == 0
    assert cli("check", bad, "--max-breaks", 1, "--no", "new-findings").code == 1
    assert cli("check", good).out == "passed: 2 limits hold\n"
    assert cli("report", bad).code == 0


@pytest.mark.parametrize(
    ("table", "fact"),
    [("check = 3", "must be a table"), ("check = { max-brakes = 1 }", "no limit called max-brakes"),
     ("check = { baseline = 3 }", "baseline must be a path")],
)  # fmt: skip
def test_a_wrong_setting_is_one_sentence_and_a_remedy(cli, bad, tmp_path, table, fact):
    (tmp_path / "pyproject.toml").write_text(f"[tool.traceview]\n{table}\n")
    assert cli("check", bad, "--max-breaks", 1).code == 2
    assert fact in cli.err.splitlines()[0]
    assert len(cli.err.splitlines()) == 2


def test_a_document_in_a_file_and_lines_on_stdout(cli, bad, tmp_path):
    out = tmp_path / "found.sarif"
    assert cli("check", bad, "--max-breaks", 0, "--format", "sarif", "-o", out).code == 1
    assert cli.out.startswith("max-breaks: ")
    assert json.loads(out.read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github"])
def test_every_format_is_alone_on_stdout(cli, documents, form):
    assert cli("check", documents[0], "--max-breaks", 0, "--format", form).code == 1
    assert cli.out.lstrip()[:1] in "{<:"
    assert cli.err == ""
