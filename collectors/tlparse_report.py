"""tlparse's own report next to ours, one for each structured log. Its failures are notes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from traceview.run import PassRecord, Run

WITHIN_S = 60.0
LARGEST_MB = 500


def find_tlparse() -> str | None:
    """The program next to our interpreter, else on PATH."""
    ours = Path(sys.executable).with_name("tlparse")
    return str(ours) if ours.is_file() else shutil.which("tlparse")


def write_reports(run: Run, record: PassRecord) -> Iterator[str]:
    """Write ``tlparse/PASS/N/index.html`` for every log of a pass; yields what went wrong."""
    logs = sorted((run.raw(record) / "structured").glob("*.log"))
    program = find_tlparse()
    if program is None and logs:
        yield "tlparse was not found, so there is no tlparse report. Run `pip install tlparse`."
        return
    until = time.monotonic() + WITHIN_S
    for number, log in enumerate(logs):
        out = run.folder / "tlparse" / record.name / str(number)
        megabytes = log.stat().st_size // 1_000_000
        if megabytes > LARGEST_MB:
            yield f"tlparse did not run on {run.relative(log)}: {megabytes} MB is too large for it."
            continue
        problem = None
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(
                [str(program), str(log), "-o", str(out), "--overwrite", "--no-browser"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(until - time.monotonic(), 0.1),
                check=False,
            )
            if done.returncode != 0:
                words = done.stderr.decode("utf-8", "replace").strip().splitlines()
                problem = (words[-1] if words else f"exit status {done.returncode}")[:300]
        except OSError as error:
            problem = error.strerror or str(error)
        except subprocess.TimeoutExpired:
            problem = f"it did not finish within {WITHIN_S:.0f} s."
        if problem:
            yield f"tlparse failed on {run.relative(log)}: {problem}"
