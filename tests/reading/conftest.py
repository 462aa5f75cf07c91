"""Logs of a small job, read once for a whole module."""

import gzip
import re
from pathlib import Path

import pytest

from traceview.inputs import find
from traceview.reading import read_all
from traceview.reading.executors import Serial
from traceview.run import Manifest, Run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "structured"
_PID = re.compile(rb"^(V\d{4} [\d:.]+) \d+ ", re.MULTILINE)


def write_log(path, pid, rank=None, name="guards"):
    """A recorded log as another process of another rank wrote it."""
    log = gzip.decompress((FIXTURES / f"{name}.log.gz").read_bytes())
    log = _PID.sub(rb"\1 %d " % pid, log)
    if rank is not None:
        log = re.sub(rb"^(V[^\n]*)\}$", rb'\1, "rank": %d}' % rank, log, flags=re.MULTILINE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(log)
    return path


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
