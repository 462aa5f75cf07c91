"""What is usable on this machine and in the target's environment, as plain data."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
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
    try:
        interpreter = located(python) if python else default_python()
        facts = ask(interpreter, Path(__file__).with_name("ask_doctor.py"), [], _IMPORT_WITHIN_S)
    except TargetUnusable as error:
        missing = Check("python", "missing", error.fact, "running the script", error.remedy)
        return [missing, _gpu_driver(), *_here(Path(tempfile.gettempdir()))]
    if facts.get("torch_error"):
        temporary = Path(tempfile.gettempdir())
        found = [_python(interpreter, facts), _torch(interpreter, facts)]
        return [*found, _gpu_driver(), *_here(temporary)]
    return [
        _python(interpreter, facts),
        _torch(interpreter, facts),
        _triton(facts),
        _compiler(facts),
        _gpu(facts),
        _gpu_driver(),
        _profiler(facts),
        *_here(Path(facts["cache"])),
    ]


def _python(interpreter: str, facts: dict[str, Any]) -> Check:
    version = ".".join(map(str, facts["python_version"]))
    return Check("python", "ok", f"{version} ({interpreter})", "running the script")


def _torch(interpreter: str, facts: dict[str, Any]) -> Check:
    needed = "everything except reading existing runs"
    if facts.get("torch_error"):
        remedy = "Install torch in that environment, or choose another with --python PATH."
        return Check("torch", "missing", facts["torch_error"], needed, remedy)
    try:
        check_versions(interpreter, facts)
    except TargetUnusable as error:
        return Check("torch", "missing", error.fact, needed, error.remedy)
    return Check("torch", "ok", facts["torch_version"], needed)


def _triton(facts: dict[str, Any]) -> Check:
    needed = "compiled kernels on a GPU"
    if facts.get("triton_version"):
        return Check("triton", "ok", facts["triton_version"], needed)
    remedy = "Install triton (Linux wheels of torch with CUDA include it)."
    status: Status = "missing" if facts.get("device") else "limited"
    return Check("triton", status, "can't be imported", needed, remedy)


def _compiler(facts: dict[str, Any]) -> Check:
    needed = "compiled kernels on the CPU"
    found = facts.get("compiler")
    if found and (path := shutil.which(found)):
        return Check("C++ compiler", "ok", path, needed)
    remedy = "Install g++ (apt install g++), or set CXX to a compiler."
    return Check("C++ compiler", "missing", found or "none that Inductor can use", needed, remedy)


def _gpu(facts: dict[str, Any]) -> Check:
    needed = "timing by the GPU's own clock"
    if facts.get("device"):
        return Check("GPU", "ok", facts["device"], needed)
    why = facts.get("device_error") or (
        "none that torch can use"
        if facts.get("cuda_version")
        else "this torch was built without CUDA"
    )
    remedy = "Without it, scripts run on the CPU and the host clock times them."
    return Check("GPU", "limited", why, needed, remedy)


def _gpu_driver() -> Check:
    needed = "a GPU"
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return Check("GPU driver", "ok", done.stdout.splitlines()[0].strip(), needed)
    except (OSError, subprocess.SubprocessError, IndexError):
        remedy = "If this machine has an NVIDIA GPU, install its driver."
        return Check("GPU driver", "limited", "nvidia-smi did not report one", needed, remedy)


def _profiler(facts: dict[str, Any]) -> Check:
    needed = "time per kernel category"
    kinds = facts.get("activities")
    if not kinds:
        remedy = "Use a torch build with Kineto. Without it, only whole steps are measured."
        return Check("profiler", "missing", "this torch was built without Kineto", needed, remedy)
    found = ", ".join(kinds)
    if facts.get("device") and "CUDA" not in kinds:
        remedy = "CUPTI is missing. Install a CUDA wheel of torch, which includes it."
        return Check("profiler", "limited", found, needed, remedy)
    return Check("profiler", "ok", found, needed)


def _here(cache: Path) -> list[Check]:
    """What does not depend on torch: tlparse, disk space, folders that must be writable."""
    program = find_tlparse()
    remedy = None if program else "Install it with `pip install tlparse`."
    status: Status = "ok" if program else "missing"
    needed = "the tlparse report"
    places = (
        ("working folder", Path.cwd(), "the run folder", "Choose another one with -o DIR."),
        ("temporary folder", Path(tempfile.gettempdir()), "torch and compilers", "Set TMPDIR."),
        ("Inductor cache", cache, "runs without traceview", "Set TORCHINDUCTOR_CACHE_DIR."),
    )
    return [
        Check("tlparse", status, program or "not found", needed, remedy),
        _disk(Path.cwd()),
        *(_writable(*place) for place in places),
    ]


def _disk(folder: Path) -> Check:
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    status: Status = "ok" if free_mb >= 10 * NEEDED_MB else "limited"
    if free_mb < NEEDED_MB:
        status = "missing"
    remedy = None if status == "ok" else OTHER_DISK
    return Check(
        "free disk", status, f"{free_mb / 1000:.1f} GB", "logs and compiled kernels", remedy
    )


def _writable(name: str, folder: Path, needed_for: str, remedy: str) -> Check:
    """Whether a file can be made there, or, where the folder does not exist yet, in its parent."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Check(name, "ok", str(folder), needed_for)
    return Check(name, "missing", f"{folder} is not writable", needed_for, remedy)
