"""Which interpreter runs the target, what torch it has, and whether the target can be run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceview.collectors.ask_target import MARK
from traceview.collectors.child import notebook
from traceview.collectors.options import CollectOptions, Console
from traceview.errors import TargetUnusable

OLDEST_TORCH = (2, 6)
OLDEST_PYTHON = (3, 10)
ANSWER_WITHIN_S = 60.0
PROVENANCE = "INDUCTOR_PROVENANCE"
KERNEL_RANGES = "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"
SWITCHES = (PROVENANCE, KERNEL_RANGES)

# `-c` puts the working directory on sys.path first: a json.py there must not be run by asking.
_CLEAN_PATH = "import sys\nif sys.path[:1] == ['']: del sys.path[0]\n"


@dataclass(frozen=True, slots=True)
class Target:
    """A target that can be run, and what the user should know about it.

    ``script_root`` is None where only Python itself knows it.
    """

    python: str
    torch_version: str
    log_names: frozenset[str]
    switches: frozenset[str]
    script_root: str | None
    notes: tuple[str, ...] = ()


def find_target(options: CollectOptions, console: Console) -> Target:
    """The interpreter and the target, checked; TargetUnusable says what is wrong with either."""
    if options.kind == "script":
        path = Path(options.target)
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            fact = f"Can't open the script {options.target} ({error.strerror})."
            remedy = "Check the path. Use -m MODULE to run a module."
            raise TargetUnusable(fact, remedy, slug="script-missing") from error
        if is_folder and not (path / "__main__.py").is_file():
            fact = f"{options.target} is a folder without a __main__.py."
            raise TargetUnusable(fact, "Give the path of a script in it.", slug="script-is-folder")
    notes = _check_notebook(options.target) if options.is_notebook else ()
    for note in notes:
        console.say(note)
    python, facts = _chosen_python(options)
    check_versions(python, facts)
    # What the interpreter found about the target: one that can't be compiled can't be run.
    problem, text, name = facts.get("problem"), facts.get("text"), options.target
    if problem == "syntax":
        console.say(str(text).rstrip())
        where = f", line {facts['line']}" if facts.get("line") else ""
        fact = f"{python} can't compile {name}{where}, so nothing was run."
        raise TargetUnusable(fact, "Fix the line that Python reports.", slug="syntax-error")
    if problem == "unreadable":
        fact = f"Can't read {name} ({text})."
        raise TargetUnusable(fact, "Check its permissions.", slug="script-unreadable")
    if problem == "missing":
        fact = f"{python} has no module named {name}."
        remedy = "Run from the folder that contains its package, or set PYTHONPATH."
        raise TargetUnusable(fact, remedy, slug="module-missing")
    if problem == "package":
        fact = f"{name} is a package without a __main__ module."
        raise TargetUnusable(fact, "Give the name of a module in it.", slug="module-is-package")
    return Target(
        python=python,
        torch_version=facts["torch_version"],
        log_names=frozenset(facts["log_names"]),
        switches=frozenset(facts["switches"]),
        script_root=facts.get("script_root"),
        notes=notes,
    )


def _check_notebook(path: str) -> tuple[str, ...]:
    """What of its cells is left out; TargetUnusable where it can't be run."""
    try:
        cells = notebook.read(path)
    except OSError as error:
        fact = f"Can't read {path} ({error.strerror})."
        raise TargetUnusable(fact, "Check its permissions.", slug="script-unreadable") from error
    except notebook.NotANotebook as error:
        fact = f"{path} is no notebook that can be run. {error}"
        raise TargetUnusable(fact, "Save it again in Jupyter.", slug="not-a-notebook") from error
    notes = []
    for cell in cells:
        if cell.left_out:
            shown = "; ".join(cell.left_out[:3])
            more = f" and {len(cell.left_out) - 3} more" if len(cell.left_out) > 3 else ""
            notes.append(f"Left out of cell {cell.number}, which is no Python: {shown}{more}")
    return tuple(notes)


def default_python() -> str:
    """The interpreter that runs us if it has torch, else the first other one that has."""
    return _chosen_python(CollectOptions(kind="module", target=""))[0]


def ask(python: str, program: Path, arguments: Sequence[str], within_s: float) -> dict[str, Any]:
    """Run ``program`` (a file of this package) in ``python`` and return its answer.

    TargetUnusable if there is no such interpreter, or if what is there gives no answer in time.
    """
    source = _CLEAN_PATH + program.read_text(encoding="utf-8")
    try:
        done = subprocess.run(
            [python, "-c", source, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within_s,
            check=False,
        )
    except OSError as error:
        fact = f"Can't start the interpreter {python} ({error.strerror})."
        raise TargetUnusable(fact, _NAME_ANOTHER, slug="no-interpreter") from error
    except subprocess.TimeoutExpired as error:
        fact = f"The interpreter {python} did not answer within {within_s:.0f} s."
        raise TargetUnusable(fact, _NAME_ANOTHER, slug="silent-interpreter") from error
    for line in reversed(done.stdout.decode("utf-8", "replace").splitlines()):
        if line.startswith(MARK):
            answer: dict[str, Any] = json.loads(line[len(MARK) :])
            return answer
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = words[-1] if words else f"exit status {done.returncode}"
    fact = f"{python} does not behave like a Python interpreter ({why[:300]})."
    raise TargetUnusable(fact, _NAME_ANOTHER, slug="not-python")


_NAME_ANOTHER = "Choose the interpreter that has torch with --python PATH."


def _chosen_python(options: CollectOptions) -> tuple[str, dict[str, Any]]:
    """The interpreter and its answer; with none named, the first that has torch.

    Tried are ours, the activated environment's, and those on PATH, each once.
    """
    kind = options.kind if options.target else "none"
    arguments = [kind, options.target, *SWITCHES]
    program = Path(__file__).with_name("ask_target.py")
    if options.python is not None:
        python = located(options.python)
        return python, ask(python, program, arguments, ANSWER_WITHIN_S)
    tried: list[str] = []
    candidates = [sys.executable] if importlib.util.find_spec("torch") else []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            candidates.append(str(Path(os.environ[variable], "bin", "python")))
    candidates += [path for name in ("python3", "python") if (path := shutil.which(name))]
    for candidate in dict.fromkeys([*candidates, sys.executable]):
        tried.append(candidate)
        try:
            facts = ask(candidate, program, arguments, ANSWER_WITHIN_S)
        except TargetUnusable:
            continue
        if facts["torch_version"] is not None:
            return candidate, facts
    fact = f"No interpreter with torch was found (tried {', '.join(tried)})."
    raise TargetUnusable(fact, _NAME_ANOTHER, slug="no-torch")


def located(python: str) -> str:
    """An absolute path; links stay, because a virtual environment is found by its own link."""
    if os.sep not in python:
        return shutil.which(python) or python
    return os.path.abspath(Path(python).expanduser())  # noqa: PTH100


def check_versions(python: str, facts: dict[str, Any]) -> None:
    """TargetUnusable where Python or torch is missing or too old."""
    version = ".".join(map(str, facts["python_version"]))
    if tuple(facts["python_version"]) < OLDEST_PYTHON:
        fact = f"{python} is Python {version}; traceview needs 3.10 or later."
        raise TargetUnusable(fact, _NAME_ANOTHER, slug="python-too-old")
    torch_version = facts["torch_version"]
    if torch_version is None:
        fact = f"{python} (Python {version}) has no torch."
        remedy = "Choose one that has torch with --python PATH, or install torch there."
        raise TargetUnusable(fact, remedy, slug="no-torch")
    match = re.match(r"(\d+)\.(\d+)", torch_version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST_TORCH:
        fact = f"{python} has torch {torch_version}; traceview needs 2.6 or later."
        remedy = "Upgrade torch there, or choose another interpreter with --python PATH."
        raise TargetUnusable(fact, remedy, slug="torch-too-old")
