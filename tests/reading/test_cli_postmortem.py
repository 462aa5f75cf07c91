"""``traceview postmortem`` from the command line: folders, exit codes, what it says."""

import json
import subprocess

import pytest
from click.testing import CliRunner
from reading_logs import write_log

from traceview.cli import traceview
from traceview.errors import NothingToAnalyse, UsageError
from traceview.parse import cutting, structured


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs a command in a folder of its own; the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(traceview, list(map(str, arguments)))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return run


@pytest.fixture
def logs(tmp_path):
    write_log(tmp_path / "logs/rank_0.log", 11, 0)
    return tmp_path / "logs"


def test_a_folder_gives_a_run_folder_that_other_commands_read(call, logs, tmp_path):
    code, said = call("postmortem", logs, "--workers", 1)
    folder = tmp_path / "traceview-postmortem"
    assert code == 0
    assert f"report: {folder / 'report.html'}" in said
    assert json.loads((folder / "run.json").read_text())["target_kind"] == "logs"
    code, said = call("query", folder, "select count(*) as n from compiles", "--format", "csv")
    assert (code, int(said.split()[1]) > 0) == (0, True)
    assert call("report", folder)[0] == 0
    assert "inputs (1 rows)" in call("tables", folder)[1]
    assert not (folder / "scratch").exists()


def test_an_older_folder_is_left_alone(call, logs, tmp_path):
    call("postmortem", logs, "--workers", 1)
    _, said = call("postmortem", logs, "--workers", 1)
    assert "traceview-postmortem already exists" in said
    assert (tmp_path / "traceview-postmortem-2" / "report.html").is_file()


def test_resuming_goes_on_in_the_same_folder(call, logs, tmp_path):
    call("postmortem", logs, "-o", "run", "--workers", 1)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("run/parts/*.json")}
    write_log(logs / "rank_1.log", 12, 1)
    assert call("postmortem", logs, "-o", "run", "--resume", "--workers", 1)[0] == 0
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("run/parts/*.json")}
    assert len(after) == 2
    assert before.items() <= after.items()


def test_damage_is_an_exit_code_where_that_is_wanted(call, logs):
    (logs / "rank_0.log").write_bytes((logs / "rank_0.log").read_bytes()[:-100])
    assert call("postmortem", logs, "--workers", 1)[0] == 0
    assert call("postmortem", logs, "--workers", 1, "--strict")[0] == 1


def test_whole_logs_pass_strictly(call, logs):
    assert call("postmortem", logs, "--workers", 1, "--strict")[0] == 0


@pytest.fixture
def others(monkeypatch):
    """The processes that are started beside this one, for logs of any size."""
    monkeypatch.setattr(cutting, "AHEAD_BYTES", 1)
    monkeypatch.setattr(structured, "AHEAD_BYTES", 1)
    started, popen = [], subprocess.Popen

    def start(*args, **more):
        started.append(popen(*args, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def test_a_single_large_log_is_begun_once(call, logs, others):
    assert call("postmortem", logs, "--strict")[0] == 0
    assert len(others) == 1
    assert others[0].poll() is not None


def test_what_was_begun_ends_where_the_command_does_not_go_on(call, logs, others, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traceview]\nselect = ["no-such-rule"]\n')
    with pytest.raises(UsageError):
        call("postmortem", logs)
    assert [other.poll() is not None for other in others] == [True]
    assert not (tmp_path / "traceview-postmortem").exists()


def test_a_wrong_option_is_told_before_any_log_is_begun(call, logs, others, tmp_path):
    with pytest.raises(UsageError):
        call("postmortem", logs, "--select", "no-such-rule")
    assert others == []
    assert not (tmp_path / "traceview-postmortem").exists()


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda folder: None, "There is nothing to read"),
        (lambda folder: (folder / "a.md").write_text("# hello\n"), "There is nothing to read"),
        (lambda folder: (folder / "a.log").write_text(""), "The only file"),
    ],
)
def test_nothing_to_read_is_said_and_leaves_no_folder(call, tmp_path, make, fact):
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty")
    with pytest.raises(NothingToAnalyse, match=fact):
        call("postmortem", tmp_path / "empty")
    assert not (tmp_path / "traceview-postmortem").exists()


def test_a_scheduler_has_its_own_workers(call, logs):
    with pytest.raises(UsageError, match="can't be combined"):
        call("postmortem", logs, "--workers", 2, "--scheduler", "tcp://127.0.0.1:1")


def test_resuming_in_the_folder_of_a_script_is_refused(call, logs, tmp_path):
    from traceview.run import Manifest, Run

    Run.create(tmp_path / "run", Manifest())
    with pytest.raises(UsageError, match="run folder of a script"):
        call("postmortem", logs, "-o", "run", "--resume")
