"""What the script reads and writes is what it would be without us."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pytest
from parent_helpers import Listener, driver_command, environment, record, run_script
from test_ends_process import launch_here, wait_for

pytestmark = pytest.mark.live

BINARY = bytes(range(256)) * 3 + b"\r\n\n\r"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("streams"))


def run_driver(folder, python, body, stdin=subprocess.DEVNULL, **options):
    command = driver_command(folder, python, body, **options)
    given = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    return subprocess.run(command, capture_output=True, cwd=folder, check=False, **given)


def test_binary_on_both_streams_passes_unchanged(tmp_path, python):
    body = f"""
    data = {BINARY!r}
    sys.stdout.buffer.write(b"<" + data + b">")
    sys.stderr.buffer.write(b"<" + data + b">")
    """
    done = run_driver(tmp_path, python, body)
    assert b"<" + BINARY + b">" in done.stdout
    assert b"<" + BINARY + b">" in done.stderr
    assert (tmp_path / "out/raw/cold/stderr.txt").read_bytes() == b"<" + BINARY + b">"


def test_megabytes_of_stderr_are_all_kept(tmp_path, python):
    done = run_driver(tmp_path, python, "for i in range(40000): sys.stderr.write('%079d\\n' % i)")
    kept = (tmp_path / "out/raw/cold/stderr.txt").read_bytes()
    assert len(kept) == 80 * 40000
    assert kept in done.stderr


def test_stdout_goes_to_stderr_where_ours_is_wanted_for_the_diagnosis(tmp_path, python):
    done = run_driver(tmp_path, python, "print('hello')", quiet_stdout_to_stderr=True)
    assert b"hello" not in done.stdout
    assert b"hello\n" in done.stderr
    assert (tmp_path / "out/raw/cold/stderr.txt").read_bytes() == b""


def test_stderr_is_passed_on_while_the_script_runs(tmp_path, python):
    body = "import time\nprint('now', file=sys.stderr, flush=True)\ntime.sleep(30)"
    process = subprocess.Popen(
        driver_command(tmp_path, python, body), stderr=subprocess.PIPE, cwd=tmp_path
    )
    try:
        began = time.monotonic()
        while b"now" not in process.stderr.readline():
            assert time.monotonic() - began < 10
    finally:
        process.terminate()
        process.communicate()


def test_our_own_stderr_closed_does_not_hurt_the_script(tmp_path):
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        body = "import sys; sys.stderr.write('kept\\n'); sys.exit(5)"
        outcome = launch_here(tmp_path, body, stderr=theirs)
    finally:
        os.close(theirs)
    assert outcome.ending.code == 5
    assert (tmp_path / "stderr.txt").read_text() == "kept\n"


def test_a_full_disk_stops_our_copy_and_not_the_script(tmp_path, capfd):
    (tmp_path / "stderr.txt").symlink_to("/dev/full")
    body = (
        "import sys; sys.stderr.write('first\\n'); sys.stderr.flush(); sys.stderr.write('last\\n')"
    )
    outcome = launch_here(tmp_path, body)
    assert outcome.ending.code == 0
    assert "No space left" in outcome.notes[0]
    assert capfd.readouterr().err == "first\nlast\n"


READS = """
text = sys.stdin.read()
print("read", repr(text))
tell(event="first_call")
"""


def test_stdin_from_a_pipe_reaches_the_first_run_alone(tmp_path, python):
    done = run_driver(tmp_path, python, READS, stdin=b"one line\n")
    assert b"read 'one line\\n'" in done.stdout
    assert b"read ''" not in done.stdout, "what was printed once is not printed again"
    assert (tmp_path / "out/raw/baseline/stdout.txt").read_bytes() == b"read ''\n"
    assert record(tmp_path, 1)["name"] == "baseline"
    assert b"had an empty stdin" in (tmp_path / "out/run.json").read_bytes()


def test_stdin_from_a_file_is_rewound_to_where_it_stood(tmp_path, python):
    (tmp_path / "input").write_bytes(b"header\nthe rest\n")
    with (tmp_path / "input").open("rb", buffering=0) as file:
        file.seek(7)
        done = run_driver(tmp_path, python, READS, stdin=file)
    again = (tmp_path / "out/raw/baseline/stdout.txt").read_bytes()
    assert [text.count(b"read 'the rest\\n'") for text in (done.stdout, again)] == [1, 1]
    assert b"had an empty stdin" not in (tmp_path / "out/run.json").read_bytes()


def test_the_script_sees_what_it_would_without_us(tmp_path, python):
    body = """
    print(sys.argv, __name__, Path(sys.path[0]).resolve() == Path.cwd(), Path(__file__).name)
    print(Path.cwd(), "TRACEVIEW_CHILD_CONFIG" in os.environ, os.environ.get("PYTHONPATH"))
    print(any("bootstrap" in entry for entry in sys.path))
    """
    command = driver_command(tmp_path, python, body, args=["a", "--b", "c d"])
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False, env=clean)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.decode().splitlines()[:3]
    assert first == f"{[str(tmp_path / 'train.py'), 'a', '--b', 'c d']} __main__ True train.py"
    assert second == f"{tmp_path} False None"
    assert third == "False"


def test_a_script_that_changes_directory_and_forks(tmp_path, python):
    body = """
    import multiprocessing
    os.chdir("/")
    class Pair:
        def __init__(self, a): self.a = a
    def work(pair): return Pair(pair.a + 1)
    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print("pool", [pair.a for pair in pool.map(work, [Pair(1), Pair(2)])])
        pid = os.fork()
        if pid == 0:
            os._exit(3)
        print("forked", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        tell(event="note", what="written after chdir", why="")
    """
    done = run_driver(tmp_path, python, body)
    assert b"pool [2, 3]\nforked 3\n" in done.stdout, done.stderr
    assert list((tmp_path / "out/raw/cold").glob("events-*-test.jsonl"))
    assert record(tmp_path)["ending"]["code"] == 0


def test_descriptors_that_a_shell_opened_reach_the_script(tmp_path):
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    try:
        outcome = launch_here(tmp_path, f"import os; os.write({theirs}, b'through')")
        assert os.read(ours, 100) == b"through"
    finally:
        os.close(ours)
        os.close(theirs)
    assert outcome.ending.code == 0


def on_terminal(command, cwd, keys=b"", ready=None, size=(33, 77)):
    """Run a command as a terminal's foreground job, type ``keys``; returns what it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    # A controlling terminal has to be taken by the process itself, between fork and exec.
    take = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", take, *command], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    if ready is not None:
        wait_for(ready)
    os.write(ours, keys)
    shown = b""
    while select.select([ours], [], [], 30)[0]:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:
            break
        shown += data
    os.close(ours)
    process.wait(timeout=10)
    return shown


def test_on_a_terminal_stderr_stays_a_terminal_and_bytes_stay_verbatim(tmp_path, python):
    body = """
    print(os.isatty(2), os.get_terminal_size(2), os.tcgetpgrp(0) == os.getpgrp(), file=sys.stderr)
    print("typed", repr(input()), file=sys.stderr)
    """
    shown = on_terminal(driver_command(tmp_path, python, body), tmp_path, keys=b"yes\n")
    kept = (tmp_path / "out/raw/cold/stderr.txt").read_bytes()
    size = b"os.terminal_size(columns=77, lines=33)"
    assert kept == b"True " + size + b" True\ntyped 'yes'\n"
    assert b"typed 'yes'\r\n" in shown  # the real terminal's own translation, once


def test_ctrl_c_reaches_the_script_once(tmp_path, python):
    body = """
    import signal, time
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    Path("ready").touch()
    while not seen:
        time.sleep(0.01)
    time.sleep(0.6)
    Path("count").write_text(str(len(seen)))
    """
    command = driver_command(tmp_path, python, body)
    shown = on_terminal(command, tmp_path, keys=b"\x03", ready=tmp_path / "ready")
    assert (tmp_path / "count").read_text() == "1"
    assert record(tmp_path)["ending"]["kind"] == "interrupted", shown


def test_a_new_window_size_reaches_the_script(tmp_path):
    ours, theirs = pty.openpty()
    body = f"""
import os, signal, time
sizes = []
signal.signal(signal.SIGWINCH, lambda *_: sizes.append(tuple(os.get_terminal_size(2))))
os.kill(os.getppid(), signal.SIGWINCH)
until = time.monotonic() + 10
while not sizes and time.monotonic() < until:
    time.sleep(0.01)
open({str(tmp_path / "sizes")!r}, "w").write(repr(sizes))
"""
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    launch_here(tmp_path, body, stderr=theirs)
    os.close(ours)
    os.close(theirs)
    assert (tmp_path / "sizes").read_text() == "[(120, 40)]"


def test_progress_is_cleared_before_the_scripts_bytes_and_waits_for_whole_lines(tmp_path, python):
    body = """
    import time
    tell(event="phase", phase="block", detail="3/8", step=1, stance="eager")
    time.sleep(0.5)
    sys.stderr.write("half a line"); sys.stderr.flush()
    tell(event="phase", phase="profile", step=2, stance="compiled")
    time.sleep(0.5)
    """
    console = Listener()
    run_script(tmp_path, python, body, console)
    assert console.shown == ["paired block 3/8", None, "writing tlparse's report", None]
