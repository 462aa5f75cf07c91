"""IPython's cell magic ``%%traceview``: diagnose a cell of the notebook that is being worked on.

    %load_ext traceview

    %%traceview --job-steps 1000
    for batch in batches:
        step(batch)

traceview measures a process of its own. So the cells that ran before and this one are written to a
notebook, which ``traceview diagnose`` runs: cells keep the numbers that Jupyter shows, and lines
theirs. Nothing that the cell does is seen in the notebook's own namespace.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from traceview.cli.console import Console
from traceview.collectors.output_folder import default_name, new_folder

_MAGIC = "traceview"
_OURS = f"%%{_MAGIC}"
#: In place of a cell that is not run, so that those after it keep their numbers.
_LEFT_OUT = "# left out by %%traceview"


def load(shell: Any) -> None:  # noqa: ANN401 - an InteractiveShell
    """Give ``shell`` the magic."""
    cells = _Cells(shell)
    shell.events.register("post_run_cell", cells.ended)
    shell.register_magic_function(cells.diagnose, "cell", _MAGIC)


class _Cells:
    """The cells that a shell has run, as far as they have to be run again."""

    def __init__(self, shell: Any) -> None:  # noqa: ANN401
        from IPython.core.magic_arguments import MagicArgumentParser

        self._shell = shell
        self._failed: set[int] = set()
        # Where the notebooks lie while the shell lives: `traceview try` reads them again.
        self._folder = tempfile.TemporaryDirectory(prefix="traceview-")
        self._parser = MagicArgumentParser(_OURS, add_help=False)
        self._parser.allow_abbrev = False
        self._parser.add_argument("--cells")
        self._parser.add_argument("-o", "--output")
        self._parser.add_argument("--force", action="store_true")

    def ended(self, result: Any) -> None:  # noqa: ANN401 - an ExecutionResult
        """Remember a cell that raised an error."""
        if not result.success and result.execution_count is not None:
            self._failed.add(result.execution_count)

    def diagnose(self, line: str, cell: str) -> None:
        """Diagnose this cell after the cells that ran before it.

        ``--cells 1-3,5``: run only these before it. Others are the options of `traceview diagnose`.
        """
        from IPython.display import FileLink, display

        asked, others = self._parser.parse_known_args(shlex.split(line))
        path = self._written(cell, asked.cells)
        with ExitStack() as held:
            folder = Path(asked.output or default_name(path.name))
            if not asked.force:
                folder = new_folder(folder.absolute(), Console(), held)
        words = ["diagnose", "-o", str(folder), *(["--force"] if asked.force else []), *others]
        _run([*words, "--", str(path)])
        with suppress(OSError):
            folder.rmdir()  # nothing was run
        page = folder / "report.html"
        if page.is_file():
            display(FileLink(os.path.relpath(page)))

    def _written(self, cell: str, chosen: str | None) -> Path:
        """A notebook of the cells that ran, and ``cell``."""
        _, *earlier = self._shell.history_manager.input_hist_raw
        if earlier and earlier[-1].lstrip().startswith(_OURS):  # this cell
            del earlier[-1]
        numbers = range(1, len(earlier) + 1)
        wanted = {*numbers} - self._failed if chosen is None else _numbers(chosen)
        texts = [
            text if n in wanted and not text.lstrip().startswith(_OURS) else _LEFT_OUT
            for n, text in zip(numbers, earlier, strict=True)
        ]
        name = (
            self._shell.user_ns.get("__vsc_ipynb_file__")
            or os.environ.get("JPY_SESSION_NAME")  # Jupyter's
            or "notebook"
        )
        path = Path(tempfile.mkdtemp(dir=self._folder.name), Path(name).stem + ".ipynb")
        texts.append(f"# {_OURS}\n{cell}")  # in the cell, too, the magic has the first line
        cells = [{"cell_type": "code", "source": text} for text in texts]
        path.write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")
        return path


def _numbers(text: str) -> set[int]:
    """``1-3,5``; UsageError for anything else."""
    from IPython.core.error import UsageError

    found: set[int] = set()
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    except ValueError:
        raise UsageError(f"--cells {text}: write numbers of cells, as in 1-3,5.") from None
    return found


def _run(words: list[str]) -> None:
    """``traceview WORDS``; its output here. An interrupt is its own: it reports what there is.

    Modules next to the notebook can be imported, as they can in the shell.
    """
    here = [os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]  # noqa: PTH109
    terminal = sys.stdout.isatty()
    with subprocess.Popen(
        [sys.executable, "-m", "traceview", *words],
        stdin=subprocess.DEVNULL,
        stdout=None if terminal else subprocess.PIPE,
        stderr=None if terminal else subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(here)},
        start_new_session=True,
    ) as process:
        while process.poll() is None:
            try:
                for line in process.stdout or ():
                    sys.stdout.write(line)
                    sys.stdout.flush()
                process.wait()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
