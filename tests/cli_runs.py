"""The command line, in this process or in one of its own, and recorded runs to use it on."""

import os
import subprocess
import sys
from textwrap import dedent

from traceview.__main__ import main


class Cli:
    """``traceview WORDS...`` in this process: its exit code, and what it printed."""

    def __init__(self, monkeypatch, capfd):
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def __call__(self, *words):
        self._capfd.readouterr()
        self._monkeypatch.setattr(sys, "argv", ["traceview", *map(str, words)])
        try:
            main()
        except SystemExit as end:
            self.code = end.code
        self.out, self.err = self._capfd.readouterr()
        assert "Traceback" not in self.out + self.err
        return self


def command(*words):
    """The words that run ``traceview WORDS...`` in a process of its own."""
    return [sys.executable, "-m", "traceview", *map(str, words)]


def diagnose(folder, body, *options, arguments=(), **popen):
    """Diagnose a script made of ``body`` in ``folder``; output as bytes, the run in ``out``."""
    script = folder / "train.py"
    script.write_text(dedent(body))
    words = command("diagnose", "-o", folder / "out", *options, script, *arguments)
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        words, capture_output=True, cwd=folder, env=variables, timeout=120, check=False, **popen
    )
