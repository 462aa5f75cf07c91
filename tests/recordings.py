"""Recorded runs: where they lie, and the tables of each, made once for all workers and sessions.

What was made stays in pytest's cache folder for as long as the code that makes it is the same:
``--cache-clear`` makes it again.
"""

import hashlib
import shutil
import sys
import tempfile
from contextlib import contextmanager
from functools import lru_cache, partial, wraps
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

import msgspec
import polars as pl

sys.path.append(str(Path(__file__).resolve().parents[1] / "fixtures"))
import packing

from traceview import derive as deriving
from traceview import limits
from traceview import parse as parsing
from traceview.derive import derive
from traceview.diagnosis import diagnose
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run
from traceview.tables import Tables

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "fixtures" / "runs"
NAMES = frozenset(path.name.removesuffix(".tar.xz") for path in RUNS.glob("*.tar.xz"))
#: torch then does not try its C++ compiler before the first kernel: half of a cold start.
QUICK_STARTS = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}
#: Runs that stay in memory: the tests of one follow each other.
FEW = 12
#: What stands above ``derive`` (tests/test_house.py): no table depends on it.
ABOVE = ("rules", "check", "compare", "rollout", "trials", "cli", "demos")


def at_once(function):
    """``function``, run in the thread of polars' pool (there is one), for many small operations.

    Any other thread hands each operation over and waits: a fifth of the time that tables take.
    """

    @wraps(function)
    def run(*args, **kwargs):
        ended = []

        def in_pool(frame):
            try:
                ended.append((function(*args, **kwargs), None))
            except BaseException as error:  # noqa: BLE001  # polars would make it one of its own
                ended.append((None, error))
            return frame

        _ONE.map_batches(in_pool).collect()
        result, error = ended[0]
        if error is not None:
            raise error
        return result

    return run


_ONE = pl.LazyFrame({"rows": [1]})


class Shared:
    """The folders that all workers share: of this session, and of all that run the same code."""

    folder: Path
    made: Path


def code_key():
    """A name for the code that makes tables of a run."""
    package = ROOT / "traceview"
    parts = [hashlib.sha256(pl.__version__.encode())]
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in ABOVE:
            parts.append(hashlib.sha256(path.read_bytes()))
    return hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()[:16]


def unpack(name, folder):
    """The run folder of a recorded run, unpacked below ``folder``."""
    packing.unpack(RUNS / f"{name}.tar.xz", Path(folder))
    return Path(folder) / "run"


def run_of(name):
    """A recorded run to read; who changes one unpacks his own."""
    folder = _once(Shared.folder / name, lambda scratch: unpack(name, scratch))
    return Run.open(folder / "run")


@lru_cache(maxsize=FEW)
def parsed(name):
    """The tables of a recorded run as they were read."""
    return parse_run(run_of(name))


@lru_cache(maxsize=FEW)
def tables_of(name):
    """The tables of a recorded run, derived ones included."""
    return made(name, "whole", lambda tables: tables)


def made(name, what, choose):
    """Tables derived from those of a recorded run that ``choose`` keeps."""
    archive = hashlib.sha256((RUNS / f"{name}.tar.xz").read_bytes()).hexdigest()[:16]
    derived = []

    def make(folder):
        reader = source_reader(run_of(name), parsed(name))
        derived.append(at_once(derive)(choose(parsed(name)), {}, reader))
        (folder / "tables").write_bytes(_packed(derived[0]))

    folder = _once(Shared.made / f"{name}-{what}-{archive}", make)
    return derived[0] if derived else Tables(_unpacked((folder / "tables").read_bytes()))


@lru_cache(maxsize=FEW)
def diagnosis_of(name):
    """The diagnosis of a recorded run."""
    return at_once(diagnose)(run_of(name), tables_of(name))


@contextmanager
def shared_work():
    """Commands read and derive no second time what any worker has read or derived already.

    Half of a command's time goes there, and most tests give them one of a few recorded runs. What
    is shared depends on content alone: of a run folder's raw files, of tables and sources.
    """
    with (
        patch.object(parsing, "parse_run", _parsed_once),
        patch.object(deriving, "derive", _derived_once),
    ):
        yield


def _parsed_once(run):
    digest = hashlib.sha256(repr((run.manifest, limits.now)).encode())
    for path in sorted((run.folder / "raw").rglob("*")):
        digest.update(repr(path.relative_to(run.folder)).encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return _tables_once(f"parsed-{digest.hexdigest()[:32]}", Tables(), lambda: parse_run(run))


def _derived_once(tables, settings, read_source=None):
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    for name in sorted(tables):
        digest.update(name.encode() + tables[name].write_ipc(None).getbuffer())
    for file in tables["sources"]["file"]:
        digest.update(repr(read_source and read_source(file)).encode())
    make = partial(derive, tables, settings, read_source)
    return _tables_once(f"derived-{digest.hexdigest()[:32]}", tables, make)


def _tables_once(name, given, make):
    """What ``make`` makes of the tables that are ``given``: its own are kept for all workers."""
    result = []

    def fill(folder):
        result.append(make())
        own = [
            name for name in result[0] if not (given.has(name) and given[name] is result[0][name])
        ]
        (folder / "tables").write_bytes(_packed({name: result[0][name] for name in own}))

    folder = _once(Shared.folder / name, fill)
    if not result:
        result.append(given.copy())
        for name, frame in _unpacked((folder / "tables").read_bytes()).items():
            result[0].put(name, frame)
    return result[0]


def _packed(tables):
    """All tables in one piece: as a Parquet file each they take ten times as long, both ways."""
    streams = {}
    for name in tables:
        stream = BytesIO()
        tables[name].write_ipc_stream(stream, compression="zstd")
        streams[name] = stream.getvalue()
    return msgspec.msgpack.encode(streams)


def _unpacked(data):
    streams = msgspec.msgpack.decode(data, type=dict[str, bytes])
    return {name: pl.read_ipc_stream(BytesIO(each)) for name, each in streams.items()}


def _once(folder, make):
    """The shared ``folder``, which ``make`` fills if no worker has filled it yet."""
    if not folder.exists():
        scratch = Path(tempfile.mkdtemp(dir=folder.parent))
        make(scratch)
        try:
            scratch.rename(folder)
        except OSError:  # another worker was faster
            shutil.rmtree(scratch)
    return folder
