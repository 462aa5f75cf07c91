"""Makes the gallery's reports of recorded runs: whole pages as the commands write them.

    python docs/make_gallery.py FOLDER

``docs/gallery.md`` says what each of them shows.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "fixtures"))
import make_picture
import packing

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
#: Page → the recorded run.
RUNS = {
    "cpu-helped": "healthy-pointwise",
    "cpu-hurt": "bad-ind_slower_fusion",
    "gpu": "gpu-launch_bound",
}
#: Page → the recorded job.
JOBS = {"post-mortem": "restarted", "rank-divergence": "two_jobs"}


def make(folder: Path) -> None:
    """Write a page for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for page, name in RUNS.items():
        archive = FIXTURES / "runs" / f"{name}.tar.xz"
        with tempfile.TemporaryDirectory() as scratch:
            packing.unpack(archive, Path(scratch))
            (run,) = (path.parent for path in Path(scratch).glob("*/run.json"))
            text = make_picture.page(run)
        (folder / f"{page}.html").write_text(text, encoding="utf-8")
    for page, name in JOBS.items():
        (folder / f"{page}.html").write_text(_of_job(name), encoding="utf-8")


def _of_job(name: str) -> str:
    """The report that ``traceview postmortem`` writes of a job's archive."""
    from click.testing import CliRunner

    from traceview.cli.postmortem import postmortem_command

    with tempfile.TemporaryDirectory() as scratch:
        asked = [
            str(FIXTURES / "jobs" / f"{name}.tar.xz"),
            "-o",
            f"{scratch}/run",
            "--workers",
            "1",
        ]
        done = CliRunner().invoke(postmortem_command, asked, catch_exceptions=False)
        if done.exit_code:
            raise SystemExit(f"{name}: {done.output}")
        text = (Path(scratch) / "run" / "report.html").read_text(encoding="utf-8")
    return text.replace(f"{FIXTURES / 'jobs'}/", "")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
