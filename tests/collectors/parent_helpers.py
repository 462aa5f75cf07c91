"""A target environment with a torch that is only text, and scripts that tell their own events.

The parent side never imports torch, so its tests need none: a virtual environment with a few files
named as torch names them is enough, and a script can write the events that the collector's half in
the target would write.
"""

import json
import os
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

from traceview.collectors import CollectOptions, collect

REGISTRATIONS = """
register_log("dynamo", ["torch._dynamo"])
register_artifact("graph_breaks", "…", visible=True)
register_artifact(
    "recompiles",
    "…",
)
register_artifact("perf_hints", "", off_by_default=True)
"""

TELL = """
import json, os, sys
from pathlib import Path

def tell(**event):
    folder = Path(os.environ["TORCH_TRACE"]).parent
    with (folder / f"events-{os.getpid()}-test.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\\n")
"""


class Listener:
    """A console that remembers."""

    def __init__(self):
        self.said = []
        self.shown = []

    def say(self, text):
        self.said.append(text)

    def progress(self, text):
        self.shown.append(text)


@cache
def environment(home: Path, torch_version: str | None = "2.11.0+cu130") -> str:
    """The interpreter of a new virtual environment, with that torch in it."""
    folder = home / f"env-{torch_version}"
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": ""})
    if torch_version is not None:
        (site,) = folder.glob("lib/python*/site-packages")
        files = {
            "__init__.py": "",
            "version.py": f"__version__ = '{torch_version}'\n",
            "_logging/_registrations.py": REGISTRATIONS,
            "_inductor/config.py": 'level = int(os.environ.get("INDUCTOR_PROVENANCE", "0"))\n',
        }
        for name, text in files.items():
            path = site / "torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return str(folder / "bin" / "python")


def write_script(folder: Path, body: str, name: str = "train.py") -> str:
    """A script that can ``tell`` events; returns its path."""
    path = folder / name
    path.write_text(TELL + textwrap.dedent(body))
    return str(path)


def run_script(folder: Path, python: str, body: str, console=None, **options):
    """Collect a script in ``folder / "out"``; returns the run."""
    script = write_script(folder, body)
    options = {"out": folder / "out", "python": python, **options}
    return collect(CollectOptions(kind="script", target=script, **options), console or Listener())


def ending(run, number: int = 0) -> dict:
    """A pass's ending as the manifest on disk has it."""
    manifest = json.loads((run.folder / "run.json").read_text())
    return manifest["passes"][number]["ending"]


DRIVER = """
import json, sys
from pathlib import Path
from traceview.collectors import CollectOptions, collect
from traceview.errors import TraceviewError

class Quiet:
    def say(self, text):
        sys.stderr.write(f"SAID {text}\\n")
        sys.stderr.flush()
    def progress(self, text):
        pass

given = json.loads(sys.argv[1])
given["out"] = Path(given["out"])
try:
    run = collect(CollectOptions(kind="script", **given), Quiet())
except TraceviewError as error:
    sys.exit(f"REFUSED {error.slug}: {error.fact}")
print("COLLECTED", [record.name for record in run.manifest.passes])
"""


def driver_command(folder: Path, python: str, body: str, **options) -> list[str]:
    """A command that collects a script in a process of its own, for signals and streams."""
    given = {"target": write_script(folder, body), "out": str(folder / "out"), "python": python}
    return [sys.executable, "-c", DRIVER, json.dumps({**given, **options})]


def record(folder: Path, number: int = 0) -> dict:
    """A pass's record from the run folder that ``driver_command`` named."""
    return json.loads((folder / "out" / "run.json").read_text())["passes"][number]
