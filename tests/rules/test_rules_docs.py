"""The pages that people follow: the example rule works as written, and so do the settings."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from traceview.cli.config import asked_by_file
from traceview.errors import UsageError
from traceview.rules.choice import choose
from traceview.rules.docs import write

DOCS = Path(__file__).resolve().parents[2] / "docs"
RULE = "house-slow-start"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The four files of docs/adding-a-rule.md, written as they stand there."""
    folder = tmp_path_factory.mktemp("example")
    text = (DOCS / "adding-a-rule.md").read_text(encoding="utf-8")
    files = re.findall(r"^`(house-rules/\S+)`:\n\n```\w+\n(.*?)^```", text, re.M | re.S)
    assert len(files) == 4
    for name, body in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body)
    return folder / "house-rules"


@pytest.fixture(scope="module")
def site(example, tmp_path_factory):
    """A folder with the example installed by pip, from source, without a network."""
    site = tmp_path_factory.mktemp("site")
    pip = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    words = [sys.executable, "-m", "pip", *pip, "--target", site, example]
    done = subprocess.run(words, capture_output=True, text=True)
    if "No module named" in done.stderr:
        pytest.skip("pip or setuptools is not here")
    assert done.returncode == 0, done.stderr
    return site


def traceview(site, *words, folder):
    variables = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "traceview", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables)


@pytest.mark.live
def test_the_examples_own_tests_pass(example):
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", example]
    variables = {**os.environ, "PYTHONPATH": str(example)}
    done = subprocess.run(words, capture_output=True, text=True, cwd=example, env=variables)
    assert "3 passed" in done.stdout, done.stdout


@pytest.mark.live
def test_the_example_is_a_rule_once_it_is_installed(site, tmp_path):
    rules = json.loads(traceview(site, "rules", "--json", folder=tmp_path).stdout)
    (mine,) = [row for row in rules if row["rule"] == RULE]
    assert (mine["code"], mine["origin"]) == ("HR101", "house-rules 0.1")
    assert mine["settings"] == {"most_seconds": 30.0}
    assert mine["severities"] == ["warning"]
    page = traceview(site, "explain", "hr101", folder=tmp_path).stdout
    assert page.startswith(f"# {RULE} (HR101)\n")
    assert "A rule of house-rules 0.1." in page
    assert "- `most_seconds` = 30: seconds that" in page


@pytest.mark.live
def test_the_example_finds_something_in_a_run(site, tmp_path, unpacked):
    run = unpacked("bad-gb_item", tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.traceview.rules.{RULE}]\nmost_seconds = 0.001\n"
    )
    words = ("report", run, "--select", "house", "--json")
    done = traceview(site, *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(row["rule"], row["code"]) for row in found["findings"]] == [(RULE, "HR101")]
    assert found["findings"][0]["location"]["file"].endswith("gb_item.py")
    assert found["rules"]["added"] == [{"rule": RULE, "code": "HR101", "origin": "house-rules 0.1"}]
    assert found["rules"]["settings"][0]["value"] == 0.001


def test_the_settings_of_the_page_are_right(tmp_path):
    text = (DOCS / "choosing-rules.md").read_text(encoding="utf-8")
    (toml,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (tmp_path / "pyproject.toml").write_text(toml)
    choice = choose(None, asked_by_file(tmp_path))
    assert choice.changed
    assert choice.left_out


def test_pages_of_rules_that_are_gone_are_taken_away(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "gb-gone.md").write_text("")
    write(tmp_path)
    assert not (tmp_path / "rules" / "gb-gone.md").exists()
    assert "gb-item.md" in (tmp_path / "rules.md").read_text()
    with pytest.raises(UsageError, match="no folder"):
        write(tmp_path / "nowhere")
