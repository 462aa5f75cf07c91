"""[tool.traceview] and the options: which file counts, and that every choice is reported."""

import json

import pytest
from cli_runs import Cli
from recordings import unpack

from traceview.cli.config import asked_by_file, choice_of
from traceview.errors import UsageError
from traceview.rules.plugins import installed

TABLE = '[tool.traceview]\nignore = ["gb-item"]\n'


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A function: text of a pyproject.toml in the current folder."""
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "pyproject.toml").write_text


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return unpack("bad-gb_item", tmp_path_factory.mktemp("gb_item"))


def rules_of(cli):
    return json.loads(cli.out)["rules"]


def test_the_nearest_file_with_the_table_counts(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert asked_by_file(deep) is None
    (tmp_path / "pyproject.toml").write_text(TABLE)
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert asked_by_file(deep).ignore == ("gb-item",)
    assert asked_by_file(deep).where == str(tmp_path / "pyproject.toml")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.traceview]\nselect = ['rc, TV1']\n")
    assert asked_by_file(deep).select == ("rc", "TV1")


@pytest.mark.parametrize(
    ("text", "fact", "remedy"),
    [
        ("[tool.traceview", "can't be read", "Fix the file"),
        ("\xff", "can't be read", "Fix the file"),
        ("[tool]\ntraceview = 3", "tool.traceview must be a table", "[tool.traceview]"),
        ("[tool.traceview]\nselct = []", "no key called selct", "Did you mean select?"),
        ("[tool.traceview]\nx = 1", "no key called x", "Keys are select, ignore, rules, check."),
        ("[tool.traceview]\nselect = 'rc'", "select must be a list", 'select = ["gb-item"]'),
        ("[tool.traceview]\nignore = [1]", "ignore must be a list", 'ignore = ["gb-item"]'),
        ("[tool.traceview.rules]\ngb-item = 1", "must contain one table per rule", "gb-item"),
        ("[tool.traceview]\nignore = ['gb-itm']", "no rule called gb-itm", "mean gb-item?"),
        ("[tool.traceview.rules.gb-itm]\na = 1", "no rule called gb-itm", "mean gb-item?"),
        ("[tool.traceview.rules.gb-item]\na = 1", "gb-item has no setting called a", "no settings"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_a_remedy(cli, project, run, text, fact, remedy):
    project(text, encoding="latin-1")
    assert cli("report", run).code == 2
    first, second = cli.err.splitlines()
    assert fact in first
    assert "pyproject.toml" in first
    assert remedy in second


def test_a_wrong_word_is_said_before_anything_runs(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text("open('ran', 'w')")
    assert cli("diagnose", "--ignore", "gb-itm", script).code == 2
    assert cli("demo", "--select", "gb-itm").code == 2
    assert not (tmp_path / "ran").exists()
    assert list(tmp_path.glob("traceview-*")) == []


def test_options_repeat_and_take_commas(project):
    project("")
    names = {rule.name for rule in choice_of(("gb-item, tv202", "rc-auto-dynamic"), ("TV2",)).rules}
    assert names == {"gb-item"}
    assert choice_of(("", " , ")).left_out == ()


def test_what_was_left_out_is_said_everywhere(cli, project, run):
    project(TABLE)
    cli("report", "--json", run)
    assert rules_of(cli)["left_out"] == ["gb-item"]
    assert "gb-item" not in [row["rule"] for row in json.loads(cli.out)["findings"]]
    (said,) = rules_of(cli)["notes"]
    assert "1 rule was not asked for" in said
    assert said in json.loads(cli.out)["notes"]
    flat = " ".join(cli("report", run).out.split())
    assert "1 rule was not asked for" in flat
    assert "1 rule was not asked for" in (run / "report.html").read_text()
    assert "1 rule was not asked for" in cli("report", "--markdown", run).out


def test_the_command_line_wins(cli, project, run):
    project(TABLE)
    cli("report", "--json", "--select", "gb-item", run)
    assert [row["rule"] for row in json.loads(cli.out)["findings"]] == ["gb-item"]
    assert "gb-item" not in rules_of(cli)["left_out"]


def test_the_file_of_the_current_folder_counts_not_that_of_the_run(cli, project, tmp_path, run):
    project("")
    (run / "pyproject.toml").write_text(TABLE)
    cli("report", "--json", run)
    assert rules_of(cli)["left_out"] == []


def test_a_comment_in_the_runs_own_copy(cli, project, tmp_path):
    project("")
    folder = unpack("bad-gb_item", tmp_path)
    cli("report", "--json", folder)
    (found,) = [row for row in json.loads(cli.out)["findings"] if row["rule"] == "gb-item"]
    line = found["location"]["line"]
    for copy in (folder / "raw" / "sources").iterdir():
        lines = copy.read_text().split("\n")
        lines[line - 1] += "  # traceview: ignore[gb-item, gb-fragmented]"
        copy.write_text("\n".join(lines))
    cli("report", "--json", folder)
    assert "gb-item" not in [row["rule"] for row in json.loads(cli.out)["findings"]]
    assert [(row["rule"], row["line"]) for row in rules_of(cli)["silenced"]] == [("gb-item", line)]
    assert [row["line"] for row in rules_of(cli)["unused_ignores"]] == [line]
    flat = " ".join(cli("report", folder).out.split())
    assert f"1 finding is silenced by comments in the source: gb-item at gb_item.py:{line}." in flat
    assert "`# traceview: ignore[gb-fragmented]` silences nothing" in flat


def test_explain_shows_what_is_in_force(cli, project):
    project(TABLE)
    assert "It is left out here" in cli("explain", "gb-item").out
    project("[tool.traceview]\nselct = []")
    assert cli("explain", "gb-item").code == 2
    assert cli.out.startswith("# gb-item (TV101)")
    assert "no key called selct" in cli.err


def test_not_checked_names_the_runs_own_script(cli, project, tmp_path, run):
    project("")
    cli("report", "--json", run)
    commands = {row["command"] for row in json.loads(cli.out)["not_checked"]}
    assert not any("SCRIPT" in (command or "") for command in commands)


def test_an_error_of_ours_names_no_option_that_was_not_given():
    with pytest.raises(UsageError, match=r"\(the command line\)"):
        choice_of(("nothing-like-it",))


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """An installed package whose one rule can't be imported."""
    site = tmp_path / "site"
    info = site / "xx_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: xx-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[traceview.rules]\nxx-rule = xx_rules.rule\n")
    monkeypatch.syspath_prepend(site)
    installed.cache_clear()
    yield
    installed.cache_clear()


def test_a_broken_package_is_named_and_breaks_nothing(cli, broken, project, run):
    project("[tool.traceview]\nignore = ['xx-rule']\n")
    said = "The rule xx-rule of xx-rules 1.0 is not used: its module xx_rules.rule can't be loaded"
    cli("report", "--json", run)
    assert cli.code == 0
    assert rules_of(cli)["refused"][0].startswith(said)
    assert said in " ".join(cli("report", run).out.split())
    assert said in cli("rules").err
    assert cli("explain", "xx-rule").code == 2
    assert said in cli.err
