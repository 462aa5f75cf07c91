"""Recorded runs: where they lie, and the tables of each, made once for all workers of a session."""

import shutil
import tarfile
import tempfile
from functools import lru_cache
from pathlib import Path

from traceview.derive import derive
from traceview.diagnosis import diagnose
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run
from traceview.tables import Tables

RUNS = Path(__file__).resolve().parents[1] / "fixtures" / "runs"
NAMES = frozenset(path.name.removesuffix(".tar.xz") for path in RUNS.glob("*.tar.xz"))
#: torch then does not try its C++ compiler before the first kernel: half of a cold start.
QUICK_STARTS = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}
#: Runs that stay in memory: the tests of one follow each other.
FEW = 12


class Shared:
    """The folder that all workers of a session share; the session's fixture names it."""

    folder: Path


def unpack(name, folder):
    """The run folder of a recorded run, unpacked below ``folder``."""
    unpack_archive(RUNS / f"{name}.tar.xz", folder)
    return Path(folder) / "run"


def unpack_archive(path, folder):
    """What one of our own archives holds, below ``folder``."""
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python before 3.10.12 and 3.11.4
            archive.extractall(folder)


def run_of(name):
    """A recorded run to read; who changes one unpacks his own."""
    return Run.open(_once(f"{name}.unpacked", lambda folder: unpack(name, folder)) / "run")


@lru_cache(maxsize=FEW)
def parsed(name):
    """The tables of a recorded run as they were read."""
    return parse_run(run_of(name))


@lru_cache(maxsize=FEW)
def tables_of(name):
    """The tables of a recorded run, derived ones included."""
    kept = Shared.folder / f"{name}.tables"
    if kept.exists():
        return Tables.load(kept)
    return derive(parsed(name), {}, source_reader(run_of(name), parsed(name)))


def keep(name):
    """Keeps the tables of a recorded run for the tests that come after those at hand."""
    _once(f"{name}.tables", lambda folder: tables_of(name).save(folder))


@lru_cache(maxsize=FEW)
def diagnosis_of(name):
    """The diagnosis of a recorded run."""
    return diagnose(run_of(name), tables_of(name))


def _once(name, make):
    """The shared folder of that name, which ``make`` fills if no worker has filled it yet."""
    folder = Shared.folder / name
    if not folder.exists():
        scratch = Path(tempfile.mkdtemp(dir=Shared.folder))
        make(scratch)
        try:
            scratch.rename(folder)
        except OSError:  # another worker was faster
            shutil.rmtree(scratch)
    return folder
