"""Recorded runs as diagnoses: unpacked, parsed, derived and diagnosed once a session."""

import tempfile
from functools import cache

from recordings import RUNS, unpack

from traceview.derive import derive
from traceview.diagnosis import diagnose
from traceview.diagnosis.excerpts import source_reader
from traceview.parse import parse_run
from traceview.run import Run

GPU = sorted(file.name[: -len(".tar.xz")] for file in RUNS.glob("gpu-*.tar.xz"))
CPU = ["bad-gb_fragmented", "bad-rc_limit_hit", "bad-cap_nothing_compiled_forced", "good-gb_item"]


@cache
def diagnosis(name):
    """The diagnosis of a recorded run."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run.open(unpack(name, folder))
        parsed = parse_run(run)
        return diagnose(run, derive(parsed, {}, source_reader(run, parsed)))
