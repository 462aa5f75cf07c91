"""What is usable on this machine and in the target's environment, as plain data."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from traceview.collectors.output_folder import NEEDED_MB, OTHER_DISK
from traceview.collectors.probe import ask, check_versions, default_python, located
from traceview.collectors.tlparse_report import find_tlparse
from traceview.errors import TargetUnusable

Status = Literal["ok", "missing", "limited"]
_IMPORT_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found, what it is needed for, what to do if it is not ok."""

    name: str
    status: Status
    found: str
    needed_for: str
    remedy: str | None = None


def examine(python: str | None = None) -> list[Check]:
    """Look at everything; never raises for what is missing."""
    temporary = Path(tempfile.gettempdir())
    try:
        interpreter = located(python) if python else default_python()
        facts = ask(interpreter, Path(__file__).with_name("ask_doctor.py"), [], _IMPORT_WITHIN_S)
    except TargetUnusable as error:
        missing = Check("python", "missing", error.fact, "running the script", error.remedy)
        return [missing, _gpu_driver(), *_here(temporary)]
    version = ".".join(map(str, facts["python_version"]))
    ours = Check("python", "ok", f"{version} ({interpreter})", "running the script")
    needed = "everything except reading existing runs"
    if facts.get("torch_error"):
        remedy = "Install torch in that environment, or choose another with --python PATH."
        missing = Check("torch", "missing", facts["torch_error"], needed, remedy)
        return [ours, missing, _gpu_driver(), *_here(temporary)]
    try:
        check_versions(interpreter, facts)
        torch = Check("torch", "ok", facts["torch_version"], needed)
    except TargetUnusable as error:
        torch = Check("torch", "missing", error.fact, needed, error.remedy)
    return [ours, torch, *_seen_by_torch(facts), *_here(Path(facts["cache"]))]


def _seen_by_torch(facts: dict[str, Any]) -> Iterator[Check]:
    """Triton and a C++ compiler, which make kernels of Inductor's code; the GPU; the profiler."""
    needed = "compiled kernels on a GPU"
    if facts.get("triton_version"):
        yield Check("triton", "ok", facts["triton_version"], needed)
    else:
        remedy = "Install triton (Linux wheels of torch with CUDA include it)."
        status: Status = "missing" if facts.get("device") else "limited"
        yield Check("triton", status, "can't be imported", needed, remedy)
    needed, compiler = "compiled kernels on the CPU", facts.get("compiler")
    if compiler and (path := shutil.which(compiler)):
        yield Check("C++ compiler", "ok", path, needed)
    else:
        remedy = "Install g++ (apt install g++), or set CXX to a compiler."
        found = compiler or "none that Inductor can use"
        yield Check("C++ compiler", "missing", found, needed, remedy)
    device, needed = facts.get("device"), "timing by the GPU's own clock"
    if device:
        yield Check("GPU", "ok", device, needed)
    else:
        cuda = facts.get("cuda_version")
        why = "none that torch can use" if cuda else "this torch was built without CUDA"
        remedy = "Without it, scripts run on the CPU and the host clock times them."
        yield Check("GPU", "limited", facts.get("device_error") or why, needed, remedy)
    yield _gpu_driver()
    needed, kinds = "time per kernel category", facts.get("activities")
    if not kinds:
        remedy = "Use a torch build with Kineto. Without it, only whole steps are measured."
        yield Check("profiler", "missing", "this torch was built without Kineto", needed, remedy)
    elif device and "CUDA" not in kinds:
        remedy = "CUPTI is missing. Install a CUDA wheel of torch, which includes it."
        yield Check("profiler", "limited", ", ".join(kinds), needed, remedy)
    else:
        yield Check("profiler", "ok", ", ".join(kinds), needed)


def _gpu_driver() -> Check:
    needed = "a GPU"
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return Check("GPU driver", "ok", done.stdout.splitlines()[0].strip(), needed)
    except (OSError, subprocess.SubprocessError, IndexError):
        remedy = "If this machine has an NVIDIA GPU, install its driver."
        return Check("GPU driver", "limited", "nvidia-smi did not report one", needed, remedy)


def _here(cache: Path) -> Iterator[Check]:
    """What does not depend on torch: tlparse, disk space, folders that must be writable."""
    needed = "the tlparse report"
    if program := find_tlparse():
        yield Check("tlparse", "ok", program, needed)
    else:
        remedy = "Install it with `pip install tlparse`."
        yield Check("tlparse", "missing", "not found", needed, remedy)
    free_mb = shutil.disk_usage(Path.cwd()).free // 1_000_000
    found, needed = f"{free_mb / 1000:.1f} GB", "logs and compiled kernels"
    if free_mb >= 10 * NEEDED_MB:
        yield Check("free disk", "ok", found, needed)
    else:
        status: Status = "limited" if free_mb >= NEEDED_MB else "missing"
        yield Check("free disk", status, found, needed, OTHER_DISK)
    places = (
        ("working folder", Path.cwd(), "the run folder", "Choose another one with -o DIR."),
        ("temporary folder", Path(tempfile.gettempdir()), "torch and compilers", "Set TMPDIR."),
        ("Inductor cache", cache, "runs without traceview", "Set TORCHINDUCTOR_CACHE_DIR."),
    )
    for name, folder, needed, remedy in places:
        # where the folder does not exist yet, a file has to be possible in its parent
        there = next(place for place in (folder, *folder.parents) if place.exists())
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            yield Check(name, "ok", str(folder), needed)
        else:
            yield Check(name, "missing", f"{folder} is not writable", needed, remedy)
