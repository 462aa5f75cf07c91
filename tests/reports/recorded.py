"""Recorded runs as diagnoses: unpacked, parsed, derived and diagnosed once a session."""

import tarfile
import tempfile
from functools import cache
from pathlib import Path

from traceview.derive import derive
from traceview.diagnosis import diagnose
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"
GPU = sorted(file.name[: -len(".tar.xz")] for file in RUNS.glob("gpu-*.tar.xz"))
CPU = ["bad-gb_fragmented", "bad-rc_limit_hit", "bad-cap_nothing_compiled_forced", "good-gb_item"]


@cache
def diagnosis(name):
    """The diagnosis of a recorded run."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        run = Run.open(Path(folder) / "run")
        parsed = parse_run(run)
        return diagnose(run, derive(parsed, {}, source_reader(run, parsed)))
