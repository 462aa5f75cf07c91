"""A real Dask scheduler with two workers reads what local processes read."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from recordings import unpack
from work import die_of_three

from traceview.inputs import find
from traceview.reading import open_tables, read_all
from traceview.reading.executors import Dask, Serial, WorkerDied
from traceview.run import Manifest, Run

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed"),
]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler with two workers, each a process with its nanny."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    where = ["--scheduler-file", str(file), "--no-dashboard"]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    two = ["--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder)]
    commands = [["dask_scheduler", "--port", "0", "--host", "127.0.0.1"], ["dask_worker", *two]]
    with (folder / "log.txt").open("wb") as log:
        started = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *more, *where],
                stdout=log, stderr=log, env=environment, start_new_session=True,
            )
            for module, *more in commands
        ]  # fmt: skip
    for _ in range(300):
        if file.exists():
            break
        time.sleep(0.1)
    yield json.loads(file.read_text())["address"]
    for process in started:  # with its own: a nanny that is asked waits for the worker it restarts
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
