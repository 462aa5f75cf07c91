"""Recorded jobs as ``traceview postmortem`` diagnoses them, each once a session."""

import json
import tempfile
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from traceview.cli.postmortem import postmortem_command
from traceview.diagnosis import from_json

JOBS = Path(__file__).resolve().parents[1] / "fixtures" / "jobs"
INDEX = json.loads((JOBS / "INDEX.json").read_text(encoding="utf-8"))


@cache
def diagnosis(name):
    """The diagnosis of a recorded job."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [str(JOBS / f"{name}.tar.xz"), "-o", f"{folder}/run", "--workers", "1", "--json"]
        done = CliRunner().invoke(postmortem_command, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return from_json(json.loads(done.stdout))


def planted(name):
    """What was planted in a recorded job."""
    return INDEX[name]["planted"]
