"""However a post-mortem ends, its reader processes end with it, and say nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from work import sleep_long

from traceview.reading import executors
from traceview.reading.executors import Processes

pytestmark = pytest.mark.live

DRIVER = """
import sys
from multiprocessing import active_children
from threading import Thread
from work import say_and_sleep
import traceview.cli, traceview.__main__ as start
from traceview.reading import executors
from traceview.reading.executors import Processes

class Main:
    def main(self, **_):
        print("begun", flush=True)
        for _ in Processes(3).map(say_and_sleep, range(6)):
            pass

if __name__ == "__main__":
    traceview.cli.traceview = Main()
    start.main()
"""


@pytest.fixture
def driver(tmp_path):
    """A command whose three readers have begun to work, or are about to start."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(
        [sys.executable, script], cwd=tmp_path, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_interruptible,
    )  # fmt: skip
    assert process.stdout.readline() == "begun\n"
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _interruptible():
    """A background job's children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def readers(folder):
    """Processes that have said that they work."""
    for _ in range(600):
        found = [int(path.name) for path in folder.glob("[0-9]*")]
        if len(found) >= 3:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def gone(pids):
    for _ in range(100):
        if not any(Path(f"/proc/{pid}/cmdline").exists() and _lives(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL", "SIGINT"])
def test_a_signal_to_the_command_ends_its_readers(driver, tmp_path, name):
    number = getattr(signal, name)
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as under nohup")
    pids = readers(tmp_path)
    driver.send_signal(number)
    _, said = driver.communicate(timeout=20)
    assert driver.returncode == (130 if name == "SIGINT" else -number)
    assert gone(pids)
    assert "Traceback" not in said


def test_a_signal_while_a_reader_starts_waits_until_it_has():
    """Else the reader finds half of what it is given, and prints a traceback."""
    came = []
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name)
        former = signal.signal(number, lambda *arrived: came.append(arrived[0]))
        try:
            with executors._no_interrupt():
                os.kill(os.getpid(), number)
                assert came == []
            assert came == [number]
        finally:
            signal.signal(number, former)
            came.clear()


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.2, 0.5, 1.0])
def test_an_early_ctrl_c_prints_no_tracebacks(driver, after_s):
    time.sleep(after_s)
    os.killpg(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=20)
    assert (driver.returncode, said) == (130, "")


def test_who_stops_taking_results_waits_for_no_reader():
    began = time.monotonic()
    results = Processes(2).map(sleep_long, [0, 60, 60])
    assert next(results) == (0, 0)
    results.close()
    assert time.monotonic() - began < 50
