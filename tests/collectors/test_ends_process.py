"""However the target ends, the run folder says so and what the script wrote is all there."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from parent_helpers import Listener, driver_command, ending, environment, record, run_script

from traceview.collectors.launch import Launch, Patience, launch
from traceview.run import Run

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("ends"))


def wait_for(path, within_s=20.0):
    until = time.monotonic() + within_s
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.02)


@pytest.fixture(autouse=True, scope="module")
def _interruptible():
    """A background job's children ignore Ctrl-C; a handler, of any kind, is not inherited so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(folder, python, body, **options):
    command = driver_command(folder, python, body, **options)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe)


def launch_here(folder, body, **changes):
    """Launch a program without the collector around it, in raw folder ``folder``."""
    command = [sys.executable, "-c", body]
    variables = {**os.environ, "TORCH_TRACE": str(folder / "structured")}
    return launch(Launch(command, variables, folder, **changes), Listener())


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_codes_are_the_scripts_own(tmp_path, python, code):
    run = run_script(tmp_path, python, f"sys.exit({code})")
    assert (ending(run)["kind"], ending(run)["code"]) == ("exit", code)


def test_sys_exit_with_a_sentence(tmp_path, python):
    run = run_script(tmp_path, python, "sys.exit('out of data')")
    assert ending(run)["code"] == 1
    assert (run.folder / "raw/cold/stderr.txt").read_bytes() == b"out of data\n"


def test_an_exception_before_anything_compiled(tmp_path, python):
    run = run_script(tmp_path, python, "raise ValueError('early')")
    assert ending(run)["code"] == 1
    stderr = (run.folder / "raw/cold/stderr.txt").read_text()
    assert stderr.startswith("Traceback (most recent call last):\n")
    assert stderr.endswith("ValueError: early\n")
    assert len(run.manifest.passes) == 1


def test_a_signal_by_somebody_else(tmp_path, python):
    run = run_script(tmp_path, python, "tell(event='first_call'); os.kill(os.getpid(), 9)")
    assert ending(run) == {**ending(run), "kind": "signal", "code": None, "signal": 9}
    assert len(run.manifest.passes) == 1  # killed on purpose or for out of memory: not run again


def test_a_memory_error(tmp_path, python):
    body = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    bytearray(1 << 31)
    """
    run = run_script(tmp_path, python, body)
    assert ending(run)["code"] == 1
    assert "MemoryError" in (run.folder / "raw/cold/stderr.txt").read_text()


def test_a_kill_for_want_of_memory_is_noted(tmp_path, monkeypatch):
    counts = iter([3, 4])
    monkeypatch.setattr("traceview.collectors.launch.out_of_memory_kills", lambda: next(counts))
    outcome = launch_here(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert outcome.ending.signal == 9
    assert "out-of-memory" in outcome.notes[0]


MEMORY_GROUPS = (  # where version 2 and 1 of control groups have them, the limit and the swap's
    (Path("/sys/fs/cgroup"), "memory.max", "memory.swap.max"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.swappiness"),
)


@pytest.fixture
def small_memory():
    """A control group with room for 300 MB, where the kernel lets us make one."""
    for root, limit, swap in MEMORY_GROUPS:
        group = root / f"traceview-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / limit).exists():  # the kernel's own file: this is no ordinary folder
                (group / limit).write_text("300000000")
                (group / swap).write_text("0")
                yield group
                return
        finally:
            group.rmdir()
    pytest.skip("no control group can be made here")


def test_the_kernel_kills_for_want_of_memory(tmp_path, python, small_memory):
    body = """
    tell(event='first_call')
    held = []
    while True:
        held.append(bytearray(b'x' * (1 << 24)))
    """
    command = driver_command(tmp_path, python, body)
    enter = 'echo $$ > "$0"/cgroup.procs && exec "$@"'
    inside = ["sh", "-c", enter, str(small_memory), *command]
    subprocess.run(inside, cwd=tmp_path, capture_output=True, timeout=60)
    assert record(tmp_path)["ending"]["signal"] == signal.SIGKILL
    run = Run.open(tmp_path / "out")
    assert any("out-of-memory" in note for note in run.manifest.notes)
    assert any((run.folder / "raw/cold").glob("events-*.jsonl"))


def test_stopping_is_a_success_whatever_the_exit_code(tmp_path, python):
    body = "tell(event='done', step=9, stopping=True); sys.exit(1)"
    assert ending(run_script(tmp_path, python, body))["kind"] == "stopped"


def test_a_script_that_goes_on_after_the_plan_ends_by_itself(tmp_path, python):
    run = run_script(tmp_path, python, "tell(event='done', step=9, stopping=False)")
    assert ending(run)["kind"] == "exit"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(worker.pid, file=sys.stderr, flush=True)
{more}
time.sleep(60)
"""
QUICK = Patience(interrupted_s=0.2, stopping_s=0.2, terminated_s=0.3)


def worker_of(folder):
    return int((folder / "stderr.txt").read_text().split()[0])


def gone(pid, within_s=5.0):
    """Ended, or a zombie that whoever adopted it has not waited for yet."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_a_time_out_ends_the_whole_tree(tmp_path):
    outcome = launch_here(tmp_path, STUBBORN.format(more=""), timeout_s=1.0, patience=QUICK)
    assert (outcome.ending.kind, outcome.ending.signal) == ("timeout", signal.SIGKILL)
    assert 1.0 <= outcome.ending.wall_s < 10
    assert gone(worker_of(tmp_path))


def test_a_time_out_takes_orphaned_workers_along(tmp_path):
    body = STUBBORN.format(more="").replace("signal.SIG_IGN", "signal.SIG_DFL")
    outcome = launch_here(tmp_path, body, timeout_s=1.0, patience=QUICK)
    assert (outcome.ending.kind, outcome.ending.signal) == ("timeout", signal.SIGTERM)
    assert gone(worker_of(tmp_path))


def test_a_script_that_does_not_end_after_stopping_is_ended(tmp_path):
    event = '{"event": "done", "stopping": true}\\n'
    more = f"open({str(tmp_path / 'events-1.jsonl')!r}, 'w').write({event!r})"
    more = more.replace("\\\\n", "\\n")
    outcome = launch_here(tmp_path, STUBBORN.format(more=more), patience=QUICK)
    assert (outcome.ending.kind, outcome.ending.signal) == ("stopped", signal.SIGKILL)
    assert gone(worker_of(tmp_path))


def test_a_worker_that_keeps_stderr_open_does_not_hold_us_up(tmp_path):
    body = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"])
"""
    began = time.monotonic()
    outcome = launch_here(tmp_path, body)
    assert outcome.ending.code == 0
    assert time.monotonic() - began < 8


COUNTS = """
import signal, time
seen = []
signal.signal(signal.{name}, lambda *_: seen.append(1))
Path("ready").touch()
until = time.monotonic() + 20
while not seen and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.5)
print("signals", len(seen))
sys.exit(4)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_us_alone_is_forwarded_once(tmp_path, python, name):
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as under nohup")
    process = start(tmp_path, python, COUNTS.format(name=name))
    wait_for(tmp_path / "ready")
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=30)
    assert b"signals 1\n" in out, err
    assert b"COLLECTED" in out
    ended = record(tmp_path)["ending"]
    assert (ended["kind"], ended["code"]) == ("interrupted", 4)


def test_a_terminal_that_goes_away_ends_the_script_of_its_only_command(tmp_path, python):
    body = "import time\nPath('ready').touch()\ntime.sleep(25)\nPath('late').touch()"
    command = driver_command(tmp_path, python, body)
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(tmp_path)
        os.execv(command[0], [str(word) for word in command])
    wait_for(tmp_path / "ready")
    os.close(terminal)
    os.waitpid(pid, 0)
    ended = record(tmp_path)["ending"]
    assert (ended["kind"], ended["signal"]) == ("interrupted", signal.SIGHUP)
    assert not (tmp_path / "late").exists()


def test_a_signal_while_a_script_is_stopped_is_an_interrupt(tmp_path, python):
    """Else the next run of it began, and the exit code was 0."""
    body = """
    import time
    tell(event="done", stopping=True)
    Path("ready").touch()
    time.sleep(20)
    """
    process = start(tmp_path, python, body, warm=True)
    wait_for(tmp_path / "ready")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert b"COLLECTED ['cold']" in out
    assert record(tmp_path)["ending"]["kind"] == "interrupted"


_OTHERS = """
import os, signal
from pathlib import Path
def others():
    for path in Path("/proc/self/task").iterdir():
        if int(path.name) != os.getpid():
            lines = (path / "status").read_text().splitlines()
            status = dict(line.split(":", 1) for line in lines)
            yield int(status["SigBlk"], 16) >> (signal.SIGINT - 1) & 1, status["Name"].strip()
"""
_THREADS = (
    _OTHERS
    + """
import sys
from traceview.cli.pipeline import Wanted
Wanted(False, False, False, None, (), ()).choice_before()
import polars as pl
frame, file = pl.DataFrame({"a": [1, 2, 3] * 1000}), sys.argv[1]
frame.write_parquet(file)
pl.scan_parquet([file]).group_by("a").agg(pl.len()).collect()
frame.join(frame.head(3), on="a").sort("a")
for blocked, name in others():
    print(blocked, name)
"""
)


def test_no_thread_of_ours_takes_a_signal_that_is_the_scripts(tmp_path):
    """Of such a one the sender is not known, and it would reach the script half a minute later."""
    command = [sys.executable, "-c", _THREADS, tmp_path / "a.parquet"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    threads = [line.split(" ", 1) for line in said.splitlines()]
    assert any(name.startswith("polars") for _, name in threads)
    assert [name for blocked, name in threads if blocked == "0"] == []


_STARTED = """
import os, sys
from traceview.__main__ import main
from traceview.collectors import launch
def started(*_):
    print([name for blocked, name in others() if not blocked])
    sys.stdout.flush()
    os._exit(0)
launch._start = started
sys.argv[0] = "traceview"
main()
"""


@pytest.mark.parametrize(
    "words", ["diagnose", "accuracy", "try", "sweep --modes default", "rollout"]
)
def test_no_command_has_such_a_thread_when_its_script_starts(tmp_path, python, words):
    (tmp_path / "x.py").touch()
    command = [sys.executable, "-c", _OTHERS + _STARTED, *words.split(), "--python", python, "x.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"


def test_an_interrupted_script_is_not_run_again(tmp_path, python):
    body = "import time\ntell(event='first_call')\nPath('ready').touch()\ntime.sleep(20)"
    process = start(tmp_path, python, body)
    wait_for(tmp_path / "ready")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in err
    assert b"COLLECTED ['cold']" in out
    assert record(tmp_path)["ending"]["signal"] == signal.SIGINT


def test_a_third_signal_kills_at_once(tmp_path, python):
    body = """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path("ready").touch()
    time.sleep(60)
    """
    process = start(tmp_path, python, body)
    wait_for(tmp_path / "ready")
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.4)
    process.communicate(timeout=10)
    ended = record(tmp_path)["ending"]
    assert (ended["kind"], ended["signal"]) == ("interrupted", signal.SIGKILL)


def test_a_signal_that_we_were_told_to_ignore_stays_ignored(tmp_path, python):
    body = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    command = driver_command(tmp_path, python, body)
    done = subprocess.run(["nohup", *command], capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith(b"True\n")


def test_when_we_are_killed_the_script_ends_and_the_folder_still_tells_what_ran(tmp_path, python):
    body = "import os, time\nPath('pid').write_text(str(os.getpid()))\nPath('ready').touch()\n"
    process = start(tmp_path, python, f"{body}time.sleep(60)")
    wait_for(tmp_path / "ready")
    process.kill()
    process.communicate(timeout=30)
    assert gone(int((tmp_path / "pid").read_text()))
    run = Run.open(tmp_path / "out")
    assert run.manifest.passes[0].ending.kind == "unknown"
    assert run.manifest.passes[0].command[0] == python


LAUNCHING = """
import os, sys
from pathlib import Path
from traceview.collectors.launch import Launch, Patience, launch
variables = {**os.environ, "TORCH_TRACE": sys.argv[1]}
plan = Launch([sys.executable, "-c", sys.argv[2]], variables, Path(), patience=Patience(1, 1, 1))
launch(plan, None)
"""
SLEEPING = """
import os, signal, time
from pathlib import Path
{}
Path("pid").write_text(str(os.getpid()))
Path("ready").touch()
time.sleep(60)
"""


@pytest.mark.parametrize(
    "way",
    ["signal.signal(signal.SIGTERM, signal.SIG_IGN)", "if os.fork(): time.sleep(60)"],
    ids=["it takes SIGTERM for a sign to save its work", "a worker"],
)
def test_when_we_are_killed_nothing_of_the_script_stays(tmp_path, way):
    words = [sys.executable, "-c", LAUNCHING, tmp_path / "structured", SLEEPING.format(way)]
    process = subprocess.Popen(words, cwd=tmp_path)
    wait_for(tmp_path / "ready")
    process.kill()
    process.wait(timeout=30)
    assert gone(int((tmp_path / "pid").read_text()))
