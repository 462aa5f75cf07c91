"""Does the reproducer of a ticket show the fault in a new process?

Records each script of ``scripts/failing`` (``traceview accuracy --bisect`` of those whose results
are wrong), writes its ticket, takes ``reproducer.py`` out of ``ticket.zip``, and runs it once more
in an empty folder: what it writes has to have the words of the fault, as the table here knows them.
A script of more than one file finds the others in its own folder.

    python benchmarks/bench_reproducers.py [NAME...] [--keep DIR] [--budget TIME]
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import torch

SCRIPTS = Path(__file__).resolve().parent / "scripts" / "failing"
LIMIT_S = 900.0
#: What a script of ours prints, or torch's comparison of results raises, where nothing else does.
DIFFERS = "Compiled results differ from eager's.|AccuracyError: Bad accuracy detected"
#: What shows each fault: any of the texts between ``|``.
FAULTS = {
    "edited_gradient": "CppCompileError",
    "generated_code/train": "CppCompileError",
    "item_branch": "Could not guard on data-dependent expression",
    "kept_rows": "Could not guard on data-dependent expression u0 > 4",
    "marked_dynamic": "ConstraintViolationError",
    "no_fake": "scanlib.running_max",
    "no_gradient": "no autograd formula was registered",
    "own_backend": "KeyError: 'cos'",
    "own_decomposition": "missing 1 required positional argument: 'cutoff'",
    "own_lowering": "get_slope_table",
    "relu_chain": "CppCompileError",
    "relu_runtime": "terminate called after throwing an instance of 'int'",
    "stack_inspection": "Unsupported",
    "tensor_branch": "Unsupported: Data-dependent branching",
    "testing_backend": "ReluCompileError",
    "testing_backend_runtime": "ReluRuntimeError",
    "wrong_fake_shape": "a and b must have same reduction dim",
    "wrong_fake_stride": "AssertionError: expected size",
    "wrong_likelihood": DIFFERS,
    "wrong_scores": DIFFERS,
}
KIND = re.compile(r"\*\*Reproducer:\*\* (?P<kind>.*?)\. (?P<said>It .*?)(?:\.|,|$)", re.M)
KINDS = {"the operators": "bisected", "the script": "script"}


def ran(*command: str | Path, cwd: Path | None = None, **env: str) -> str:
    """All that a process writes; nothing where it takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout + done.stderr


def measured(name: str, folder: Path, budget: str) -> tuple[str, str, bool, int, float]:
    """Kind, what the ticket says, whether it shows the fault here, its lines, and seconds."""
    script, run, out = SCRIPTS / f"{name}.py", folder / "run", folder / "ticket"
    silent = FAULTS[name] == DIFFERS
    how = ["accuracy", "--bisect"] if silent else ["diagnose", "--no-baseline"]
    ran("-m", "traceview", *how, "--force", "-o", run, script)
    began = time.perf_counter()
    asked = ["--reproduce", "--budget", budget, "--no-run-env"]
    ran("-m", "traceview", "ticket", *asked, "-o", out, run)
    taken = time.perf_counter() - began
    page = out / "ticket.md"
    found = KIND.search(page.read_text(encoding="utf-8")) if page.exists() else None
    if found is None:
        return "none", "", False, 0, taken
    with zipfile.ZipFile(out / "ticket.zip") as archive:
        program = archive.read("reproducer.py").decode()
    empty = Path(tempfile.mkdtemp(dir=folder))
    (empty / "reproducer.py").write_text(program)
    kind = next((short for words, short in KINDS.items() if found["kind"].startswith(words)), "")
    kind = kind or ("minified" if "minifier" in found["kind"] else "graph")
    more = {"PYTHONPATH": str(script.parent)} if "/" in name and kind == "script" else {}
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(empty / "cache")}
    text = ran("reproducer.py", cwd=empty, **cache, **more)
    shown = any(words in text for words in FAULTS[name].split("|"))
    return kind, found["said"], shown, len(program.splitlines()), taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FAULTS), metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    parser.add_argument("--budget", default="4m", metavar="TIME")
    args = parser.parse_args()
    print(f"torch {torch.__version__}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    shown = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.names:
            folder = (args.keep or Path(scratch)) / name.replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            kind, said, is_shown, lines, seconds = measured(name, folder, args.budget)
            shown += is_shown
            word = "shows it" if is_shown else "DOES NOT SHOW IT"
            print(
                f"{name:26} {kind:9} {lines:4} lines {seconds:6.0f} s  {word}  ({said})", flush=True
            )
    print(f"{shown} of {len(args.names)} reproducers show the fault in a new process")


if __name__ == "__main__":
    main()
