"""A real Dask scheduler with two workers reads what local processes read."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from recordings import unpack
from work import die_of_three, sleep_long

from traceview.errors import UsageError
from traceview.inputs import find
from traceview.reading import executors, open_tables, read_all
from traceview.reading.executors import Dask, Serial, WorkerDied
from traceview.run import Manifest, Run

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed"),
]


@contextmanager
def cluster(folder, workers):
    """A scheduler's address and the processes: its own, and that of all its workers."""
    file = folder / "scheduler.json"
    where = ["--scheduler-file", str(file), "--no-dashboard"]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    own = ["--nworkers", str(workers), "--nthreads", "1", "--local-directory", str(folder)]
    commands = [["dask_scheduler", "--port", "0", "--host", "127.0.0.1"]]
    commands.append(["dask_worker", *own])
    with (folder / "log.txt").open("wb") as log:
        started = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *more, *where],
                stdout=log, stderr=log, env=environment, start_new_session=True,
            )
            for module, *more in commands
        ]  # fmt: skip
    try:
        yield _address(file), started
    finally:
        # with its own: a nanny that is asked waits for the worker it restarts
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(file):
    """What the scheduler writes when it listens; before that the file is missing, then empty."""
    for _ in range(600):
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return json.loads(file.read_text())["address"]
        time.sleep(0.1)
    raise AssertionError("the scheduler did not start within a minute")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as (address, _):
        yield address


@pytest.fixture
def dask(scheduler):
    executor = Dask(scheduler)
    yield executor
    executor._client.close()


def test_a_cluster_reads_what_this_process_reads(dask, tmp_path):
    logs = unpack("bad-dd_rank_skew", tmp_path) / "raw" / "cold" / "structured"
    tables = []
    for name, executor in (("here", Serial()), ("there", dask)):
        run = Run.create(tmp_path / name, Manifest(target_kind="logs"))
        found = read_all(run, find([str(logs)]), executor)
        assert [part.error for part in found] == [None, None]
        tables.append(open_tables(run))
    here, there = tables
    assert list(here) == list(there)
    assert here["compiles"].equals(there["compiles"])
    assert here["inputs"].equals(there["inputs"])


def test_a_killed_worker_of_the_cluster_costs_its_own_item_only(dask):
    results = dict(dask.map(die_of_three, range(5)))
    assert isinstance(results.pop(3), WorkerDied)
    assert results == {0: 0, 1: 2, 2: 4, 4: 8}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(executors, "ANSWER_WITHIN_S", 2.0)
    monkeypatch.setattr(executors, "LOOK_S", 0.5)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("victim", "words"), [(0, "has gone away"), (1, "has lost all its workers")]
)
def test_a_cluster_that_dies_is_one_sentence(tmp_path, monkeypatch, victim, words):
    with cluster(tmp_path, 1) as (address, started):
        monkeypatch.setattr(executors, "ANSWER_WITHIN_S", 30.0)
        executor = Dask(address)
        monkeypatch.setattr(executors, "ANSWER_WITHIN_S", 2.0)
        results = executor.map(sleep_long, [0, 60, 60])
        assert next(results) == (0, 0)
        os.killpg(started[victim].pid, signal.SIGKILL)
        with pytest.raises(UsageError) as caught:
            next(results)
        assert words in caught.value.fact
        assert "--resume" in caught.value.remedy
        if victim == 1:
            a_scheduler_without_workers_is_reported_at_once(address)


def a_scheduler_without_workers_is_reported_at_once(address):
    with pytest.raises(UsageError) as caught:
        Dask(address)
    assert caught.value.fact == f"The Dask scheduler at {address} has no workers."
    assert caught.value.remedy == f"Start some with `dask worker {address}`."
