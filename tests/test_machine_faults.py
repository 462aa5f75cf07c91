"""The machine gives way, in more than 60 ways: the exit code is the documented one, what was there
before is as it was, nothing of ours is left half, and the next command succeeds.
"""

import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import command
from machine import Machine, step
from mutation_fixtures import log

from traceview import run
from traceview.collectors.child import recorder as child

pytestmark = pytest.mark.live

READ = ("postmortem", "--workers", 1, "logs", "-o")
REPORT = ("report", "out")
ON_DISK = ("report", "disk/out")
LIMIT = ("--max-breaks", 1000)
REPLACE, PARSE = "os.replace", "traceview.reading.mapping.parse"
FIND, DERIVE = "traceview.inputs.find", "traceview.derive.derive"
RENDER, ECHO = "traceview.reports.html.render", "click.echo"
#: Python's own words where it finds no folder for temporary files.
NO_TEMPORARY = ["tempfile._get_default_tempdir", -1, "fail", "ENOENT"]
STARTS = ("os.fork", "subprocess.Popen", "_posixsubprocess.fork_exec")
SMALL = "size=8m,nr_inodes=150"


@pytest.fixture(scope="module")
def machine():
    started = Machine()
    yield started
    started.close()


@pytest.fixture(scope="module")
def made(machine, tmp_path_factory):
    """A folder with two logs, what a post-mortem made of them, and what was made of that."""
    folder = tmp_path_factory.mktemp("made")
    logs = folder / "logs"
    logs.mkdir()
    (logs / "a.log").write_bytes(log("textlog/ranks.torch_logs"))
    structured = log("structured/resets")
    (logs / "b.log").write_bytes(structured[: structured.rfind(b"\nV", 0, 30_000) + 1])
    ended = machine.room(
        folder,
        step(*READ, "out"),
        step("ticket", "out"),
        step("timeline", "out", "-o", "t.json"),
        step("compare", "out", "out", "-o", "c.md"),
    )
    assert [each.code for each in ended] == [0] * 4, ended
    (folder / "x.py").touch()
    (folder / "said").write_text(ended[0].out.rpartition("report: ")[0])
    for path in folder.glob("*.*"):
        if path.suffix in (".out", ".err"):
            path.unlink()
    return folder


@pytest.fixture
def room(machine, made, tmp_path):
    """Steps in a copy of that folder; with a disk, the run and the logs lie on it, too."""

    def run(*steps, disk=None):
        shutil.copytree(made, tmp_path, dirs_exist_ok=True)
        if disk is not None:
            shutil.copytree(made / "out", tmp_path / "on_disk" / "out")
        ended = machine.room(tmp_path, step("--version"), *steps, disk=disk)
        if ended is None:
            pytest.skip("this user can't have a disk of his own")
        return ended

    return run


def whole(ended):
    """Nothing of ours is half: no scratch files, and what is JSON can be read."""
    assert "Traceback" not in ended.out + ended.err, ended
    assert [name for name in ended.files if name.endswith(".part")] == []


def same(before, after, *, but=()):
    """Everything is as it was, but for tables, which are made again at will."""
    changed = {
        name
        for name, digest in before.files.items()
        if after.files.get(name) != digest and "/tables/" not in name
    }
    assert changed - set(but) == set()


#: What is there is read and written again: (command and faults, code, words on stderr, disk).
KEEPS = {
    # a disk that is full, to the last byte
    "full: report": (step(*ON_DISK, filled="disk/x"), 2, "No space left", SMALL),
    "full: query": (step("query", "disk/out", "select 1", filled="disk/x"), 0, "", SMALL),
    "full: check": (step("check", "disk/out", *LIMIT, filled="disk/x"), 0, "", SMALL),
    "full: ticket": (step("ticket", "disk/out", filled="disk/x"), 2, "No space left", SMALL),
    "full: timeline": (
        step("timeline", "out", "--force", "-o", "disk/out/t.json", filled="disk/x"),
        *(2, "No space left", SMALL),
    ),
    "full: compare": (
        step("compare", "out", "out", "-o", "disk/out/c.md", filled="disk/x"),
        *(2, "No space left", SMALL),
    ),
    "full: post-mortem, again": (
        step(*READ, "disk/out", "--resume", filled="disk/x"),
        *(2, "No space left", SMALL),
    ),
    "no inodes: report": (step(*ON_DISK, no_inodes="disk/x"), 2, "No space left", SMALL),
    "no inodes: a new folder": (
        step(*READ, "disk/new", no_inodes="disk/x"),
        *(2, "Can't create", SMALL),
    ),
    # a disk that is read-only
    "read-only: report": (step(*ON_DISK, read_only="disk"), 2, "Read-only", SMALL),
    "read-only: check": (step("check", "disk/out", *LIMIT, read_only="disk"), 0, "", SMALL),
    "read-only: ticket": (step("ticket", "disk/out", read_only="disk"), 2, "Read-only", SMALL),
    "read-only: post-mortem, again": (
        step(*READ, "disk/out", "--resume", read_only="disk"),
        *(2, "Read-only", SMALL),
    ),
    "read-only: a new folder": (
        step(*READ, "disk/new", read_only="disk"),
        *(2, "Read-only file system", SMALL),
    ),
    # quotas, and disks that fail, when a file is to take the place of another
    "quota: report": (step(*REPORT, at=[[REPLACE, -1, "fail", "EDQUOT"]]), 2, "quota"),
    "failing disk: ticket": (step("ticket", "out", at=[[REPLACE, -1, "fail", "EIO"]]), 2, "Input"),
    "stale handle: compare": (
        step("compare", "out", "out", "-o", "c.md", at=[[REPLACE, -1, "fail", "ESTALE"]]),
        *(2, "Stale"),
    ),
    "failing disk: timeline": (
        step("timeline", "out", "--force", "-o", "t.json", at=[[REPLACE, -1, "fail", "EIO"]]),
        *(2, "can't be written"),
    ),
    # limits
    "file size: report": (step(*REPORT, limit={"RLIMIT_FSIZE": 3000}), 2, ""),
    "file size: ticket": (step("ticket", "out", limit={"RLIMIT_FSIZE": 3000}), 2, ""),
    "open files: a new folder": (
        step(*READ, "new", limit={"RLIMIT_NOFILE": 8}),
        *(2, "Too many open files"),
    ),
    "open files: readers": (
        step("postmortem", "logs", "-o", "new", limit={"RLIMIT_NOFILE": 14}),
        *(2, "Too many open files"),
    ),
    "processes: readers": (
        step(
            *("postmortem", "logs", "-o", "new"),
            at=[[name, -1, "fail", "EAGAIN"] for name in STARTS],
        ),
        *(2, "temporarily unavailable"),
    ),
    "threads": (
        step(*READ, "new", at=[["threading.Thread.start", -1, "no_thread"]]),
        *(2, "refused another thread"),
    ),
    # permissions
    "folder: report": (
        step(*REPORT, plain_user=1, mode={"out": 0o555, "out/tables": 0o555}),
        *(2, "Permission denied"),
    ),
    "folder: a new one": (
        step(*READ, "logs/new", plain_user=1, mode={"logs": 0o555}),
        *(2, "Permission denied"),
    ),
    "manifest": (step(*REPORT, plain_user=1, mode={"out/run.json": 0}), 4, "Permission denied"),
    # surroundings
    "no /tmp: compare": (step("compare", "logs", "out", at=[NO_TEMPORARY]), 2, "refused"),
    "no /tmp: report": (step(*REPORT, at=[NO_TEMPORARY]), 0, ""),
    "no HOME": (step(*REPORT, env={"HOME": None, "XDG_CACHE_HOME": None}), 0, ""),
    "HOME that is not there": (step("ticket", "out", env={"HOME": "/nowhere/x"}), 0, ""),
    "HOME that is a file": (step(*REPORT, env={"HOME": "/dev/null"}), 0, ""),
    "folder that is gone": (step(*REPORT, gone_cwd="gone"), 2, "current folder no longer exists"),
    # streams
    "pipe without a reader": (step("tables", "out", no_reader=1), 1, ""),
    "no reader of errors": (step(*REPORT, no_reader=2), 0, ""),
    "nobody reads the error": (step("report", "nothing", no_reader=2), 4, ""),
    "terminal gone: long text": (step("tables", "out", terminal_gone=1), 1, ""),
    "terminal gone: report": (step(*REPORT, terminal_gone=1), 1, ""),
    "stdout is full": (step(*REPORT, onto={1: "/dev/full"}), 2, "disk is full"),
    "stdout that would not wait": (step("tables", "out", slow_reader=1), 0, ""),
    "no stdin, stdout, stderr": (step(*REPORT, closed=[0, 1, 2]), 0, ""),
    # clocks
    "clock set back: report": (step(*REPORT, at=[[DERIVE, 1, "clock_back", 10**9]]), 0, ""),
    # two at once
    "another one is writing: post-mortem, again": (
        step(*READ, "out", "--resume", claimed="out"),
        *(2, "Another traceview process is writing"),
    ),
    "another one is writing: --force": (
        step("diagnose", "--force", "-o", "out", "x.py", claimed="out"),
        *(2, "Another traceview process is writing"),
    ),
}  # fmt: skip
#: What a report is made of; reports and tickets that succeed are new.
WRITTEN = {
    "out/diagnosis.json",
    "out/report.html",
    "out/ticket.md",
    "out/ticket.zip",
    "out/run.json",
}


@pytest.mark.parametrize("name", KEEPS)
def test_what_was_there_stays(room, name):
    faulty, code, words, *disk = KEEPS[name]
    run = "disk/out" if disk else "out"
    again = ["query", run, "select 1"]
    if code == 2 and faulty["words"][0] in ("report", "ticket", "timeline", "compare"):
        again = faulty["words"]
    before, ended, after = room(
        faulty, step(*again, recovered="disk"), disk=disk[0] if disk else None
    )
    assert ended.code == code, ended
    assert words in ended.err, ended
    whole(ended)
    same(before, ended, but=WRITTEN if code in (0, 1) else ())
    assert after.code == 0, after


#: (what is done at which call of which function, exit code, exit code of a report then)
ENDS = {
    "SIGTERM while logs are looked for": ([[FIND, 1, "signals", "SIGTERM"]], -15, 4),
    "SIGTERM between two tables": ([[REPLACE, 4, "signals", "SIGTERM"]], -15, 4),
    "SIGTERM before the page": ([[RENDER, 1, "signals", "SIGTERM"]], -15, 0),
    "SIGTERM, and again as it cleans up": (
        [[REPLACE, 4, "signals", "SIGTERM"], ["shutil.rmtree", -2, "signals", "SIGTERM"]],
        *(-15, 4),
    ),
    "SIGHUP, then SIGTERM": (
        [[PARSE, 1, "signals", "SIGHUP"], ["shutil.rmtree", -2, "signals", "SIGTERM"]],
        *(-15, 4),
    ),
    "SIGHUP as it prints": ([[ECHO, 1, "signals", "SIGHUP"]], -1, 0),
    "SIGINT while logs are looked for": ([[FIND, 1, "signals", "SIGINT"]], 130, 4),
    "SIGINT while tables are derived": ([[DERIVE, 1, "signals", "SIGINT"]], 130, 0),
    "SIGINT, and again as it cleans up": (
        [[REPLACE, 4, "signals", "SIGINT"], ["shutil.rmtree", -2, "signals", "SIGINT"]],
        *(130, 4),
    ),
    "SIGKILL while logs are looked for": ([[FIND, 1, "signals", "SIGKILL"]], -9, 4),
    "SIGKILL before the manifest": ([[REPLACE, 1, "signals", "SIGKILL"]], -9, 4),
    "SIGKILL between two tables": ([[REPLACE, 8, "signals", "SIGKILL"]], -9, 4),
    "SIGKILL while tables are derived": ([[DERIVE, 1, "signals", "SIGKILL"]], -9, 0),
    "a quota in the midst of the tables": ([[REPLACE, -6, "fail", "EDQUOT"]], 2, 4),
    "a disk that fails at the page": ([[RENDER, 1, "fail", "EIO"]], 2, 0),
    "the folder is removed meanwhile": ([[DERIVE, 1, "remove", "new"]], 2, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_a_post_mortem_that_is_cut_short_goes_on(room, made, name):
    when, code, then = ENDS[name]
    _, ended, query, again = room(
        step(*READ, "new", at=when),
        step("query", "new", "select 1"),
        step(*READ, "new", "--resume"),
    )
    assert (ended.code, query.code) == (code, then), (ended, query)
    assert "Traceback" not in ended.out + ended.err
    if code != -9:
        whole(ended)
    assert again.code == 0, again
    assert again.out.rpartition("report: ")[0] == (made / "said").read_text()


def test_logs_that_change_while_they_are_read(room):
    """What was read of them stands; --resume reads those that have changed, and only those."""
    _, grown, again, other, damaged = room(
        step(*READ, "new", at=[[PARSE, 1, "append", "logs/b.log", "\nmore"]]),
        step(*READ, "new", "--resume", at=[[PARSE, 2, "fail", "EIO"]]),
        step(*READ, "cut", at=[[PARSE, 1, "truncate", "logs/b.log", 2000]]),
        step(*READ, "gone", "--strict", at=[[PARSE, 1, "remove", "logs/a.log"]]),
    )
    assert [each.code for each in (grown, again, other, damaged)] == [0, 0, 0, 1]
    whole(damaged)
    assert "new/report.html" in again.files
    assert grown.files["logs/b.log"] == again.files["logs/b.log"]


def test_a_table_that_lost_its_end_is_named(room, made):
    """After a loss of power a file may be shorter than what was written and renamed."""
    lost = next((made / "out" / "tables" / "log_records").rglob("*.parquet")).relative_to(made)
    cut = [["traceview.cli.pipeline.tables_of", 1, "truncate", lost, 200]]
    _, ended, again, new = room(
        step("query", "out", "select * from log_records", at=cut),
        step(*REPORT),
        step(*READ, "new"),
    )
    for each in (ended, again):
        assert each.code == 4, each
        assert "Table log_records of the post-mortem in out is damaged" in each.err
        assert "another folder" in each.err
    assert new.code == 0


def test_an_empty_folder_is_used_by_one_of_two(room):
    (ended,) = room(step(*READ, "empty", empty="empty", claimed="empty"))[1:]
    assert ended.code == 0, ended
    assert "so this run is written to empty-2" in ended.err
    assert "empty-2/report.html" in ended.files


def test_a_locale_without_letters(made, tmp_path):
    shutil.copytree(made, tmp_path / "here")
    words = command("report", "out")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        words, capture_output=True, check=False, cwd=tmp_path / "here", env=os.environ | plain
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Compilation on 2 ranks" in done.stdout.decode()


TWICE = """
import atexit, os, signal, sys
from traceview.__main__ import main
def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(100):
        pass
sys.argv = ["traceview", "tables", sys.argv[1]]
signal.signal(signal.SIGINT, signal.default_int_handler)
import traceview.cli.pipeline as pipeline
pipeline.tables_of = interrupt
atexit.register(interrupt)
main()
"""


def test_a_second_ctrl_c_as_it_ends_changes_nothing(made):
    """What a command ends with comes after its own last line: threads, handlers, modules."""
    words = [sys.executable, "-c", TWICE, made / "out"]
    done = subprocess.run(words, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_what_is_in_a_run_folder_is_for_its_owner_alone(made):
    before = os.umask(0)
    os.umask(before)
    assert before & 0o022 == 0o022  # or the test could not fail
    for path in (made / "out").rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((made / "out").stat().st_mode) == 0o700
    for name in ("t.json", "c.md"):  # named by the user, for whom he likes
        assert stat.S_IMODE((made / name).stat().st_mode) == 0o666 & ~before


@pytest.mark.parametrize("write", [run.write_whole, child.write_whole])
def test_a_file_is_whole_or_as_it_was(tmp_path, write):
    path = tmp_path / ("n" * 250)  # as long as a name may be
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [(path.name, b"old")]
    write(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_file_that_the_user_names_may_be_a_link_or_a_device(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    run.write_whole(tmp_path / "link", "text", run.USERS)
    assert (tmp_path / "file").read_text() == "text"
    assert (tmp_path / "link").is_symlink()
    run.write_whole(Path("/dev/null"), "text", run.USERS)
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OSError, match="No space"):
        run.write_whole(Path("/dev/full"), "text", run.USERS)
