"""The command line, in this process or in one of its own, and recorded runs to use it on."""

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from tempfile import TemporaryFile
from textwrap import dedent
from types import SimpleNamespace

import pytest
from torch_forks import Fork

from traceview.__main__ import main
from traceview.collectors import launch


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


def diagnose(folder, body, *options, arguments=(), **given):
    """Diagnose a script made of ``body`` in ``folder``; output as bytes, the run in ``out``."""
    script = folder / "train.py"
    script.write_text(dedent(body))
    words = ("diagnose", "-o", folder / "out", *options, script, *arguments)
    return served(*words, cwd=folder, **given)


def served(*words, cwd, given=b""):
    """``traceview WORDS...`` in this process, its scripts in forks of one that has imported torch.

    Exit code and output as of a process of its own, whose standard streams are files.
    """
    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        with _streams(stdin, stdout, stderr), pytest.MonkeyPatch.context() as patch:
            patch.chdir(cwd)
            patch.setenv("OMP_NUM_THREADS", "1")
            patch.setattr(sys, "argv", ["traceview", *map(str, words)])
            fork_scripts(patch)
            try:
                main()
            except SystemExit as end:
                code = end.code
        written = []
        for file in (stdout, stderr):
            file.seek(0)
            written.append(file.read())
    return subprocess.CompletedProcess(words, code, *written)


def fork_scripts(patch):
    """What the collector starts runs in forks of a process that has imported torch."""

    def popen(command, **given):
        start = subprocess.Popen if command[0] == "/bin/sh" else Fork.popen
        return start(command, **given)

    kept = SimpleNamespace(Popen=popen, DEVNULL=subprocess.DEVNULL)
    patch.setattr(launch, "subprocess", kept)


@contextmanager
def _streams(*files):
    """``files`` as this process's standard streams, and as Python's."""
    before = [os.dup(number) for number in range(3)]
    for number, file in enumerate(files):
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
        os.dup2(file.fileno(), number)
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            open(0, closefd=False) as stdin,
            open(1, "w", closefd=False) as stdout,
            open(2, "w", closefd=False) as stderr,
        ):
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            yield
    finally:
        for number, former in enumerate(before):
            os.dup2(former, number)
            os.close(former)
