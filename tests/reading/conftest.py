"""Logs of a small job, read once for a whole module."""

import pytest
from reading_logs import write_log

from traceview.inputs import find
from traceview.reading import read_all
from traceview.reading.executors import Serial
from traceview.run import Manifest, Run


@pytest.fixture
def job(tmp_path):
    """Two nodes of two ranks each, with the same process ids on both."""
    for rank in range(4):
        write_log(tmp_path / f"logs/node{rank // 2}/t{rank}.log", 100 + rank % 2, rank)
    return tmp_path / "logs"


@pytest.fixture
def read(tmp_path):
    """Reads paths into a run folder: the run, and the parts."""

    def do(*paths, folder="run", executor=None, resume=False):
        target = tmp_path / folder
        run = Run.open(target) if resume else Run.create(target, Manifest(target_kind="logs"))
        found = find([str(path) for path in paths])
        return run, read_all(run, found, executor or Serial(), resume=resume)

    return do
