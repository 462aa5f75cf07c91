"""``%%traceview`` in IPython's own shells: the notebook that is run, and what is shown of it."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from traceview.cli import ipython
from traceview.collectors.child import notebook

shells = pytest.importorskip("IPython.core.interactiveshell")


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A function: a class of shells → one of them, and what runs cells in it."""
    from traitlets.config import Config

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = Config()
    asked.HistoryManager.enabled = False  # on disk
    asked.InteractiveShell.colors = "nocolor"
    made, main = [], sys.modules["__main__"]

    def open_one(kind):
        shell = kind(config=asked)
        made.append(shell)

        def run(*cells):
            for cell in cells:
                shell.run_cell(cell, store_history=True)

        run("%load_ext traceview")
        return shell, run

    yield open_one
    for shell in made:
        shell.cleanup()
    assert sys.modules["__main__"] is main  # processes that are started later look into it


@pytest.fixture
def shell(opened, monkeypatch):
    """What runs cells in a shell, and the commands that the magic starts."""
    _, run = opened(shells.InteractiveShell)
    commands = []
    monkeypatch.setattr(ipython, "_run", commands.append)
    return run, commands


def cells_of(command):
    return notebook.read(command[-1])


def test_cells_keep_numbers_and_lines(shell):
    run, commands = shell
    run("a = 1", "b = a\n1 / 0", "\n", "%%time\nc = a", "%%traceview\nstep(c)\n", "d = 2")
    run("%%traceview --blocks 3\nfirst()\nsecond()")
    one, two = map(cells_of, commands)
    assert [cell.number for cell in two] == [1, 2, 3, 4, 5, 6, 7]
    assert [cell.python for cell in one[1:]] == [
        "a = 1",
        "# left out by %%traceview",  # it raised an error
        "\nc = a",
        "# %%traceview\nstep(c)\n",
    ]
    assert [cell.python for cell in two[4:]] == [
        "# left out by %%traceview",
        "d = 2",
        "# %%traceview\nfirst()\nsecond()\n",
    ]
    assert two[-1].name.endswith("/notebook.ipynb cell 7")
    assert commands[1][-4:] == ["--blocks", "3", "--", commands[1][-1]]


def test_cells_can_be_chosen(shell):
    run, commands = shell
    run("a = 1", "b = 1", "c = 1", "d = 1", "%%traceview --cells 2-3,5\nlast")
    found = [cell.python for cell in cells_of(commands[0])]
    left_out = "# left out by %%traceview"
    assert found == [left_out, "a = 1", "b = 1", left_out, "d = 1", "# %%traceview\nlast\n"]


def test_wrong_numbers_of_cells(shell, capsys):
    run, commands = shell
    run("%%traceview --cells x-3\nlast")
    assert "--cells x-3: write numbers of cells, as in 1-3,5." in capsys.readouterr().err
    assert commands == []


def test_the_run_folder_is_a_new_one_with_the_notebooks_name(shell, tmp_path, monkeypatch):
    run, commands = shell
    monkeypatch.setenv("JPY_SESSION_NAME", "/elsewhere/train.ipynb")
    (tmp_path / "traceview-train").mkdir()
    (tmp_path / "traceview-train" / "mine").touch()
    run("%%traceview\n1", "%%traceview -o out --force\n1")
    assert commands[0][:3] == ["diagnose", "-o", str(tmp_path / "traceview-train-2")]
    assert Path(commands[0][-1]).name == "train.ipynb"
    assert not (tmp_path / "traceview-train-2").exists()  # nothing was run
    assert commands[1][:4] == ["diagnose", "-o", "out", "--force"]


@pytest.mark.live
def test_a_cell_is_diagnosed(opened, tmp_path, capsys):
    terminal = pytest.importorskip("IPython.terminal.interactiveshell")
    shell, run = opened(terminal.TerminalInteractiveShell)
    (tmp_path / "sizes.py").write_text("BATCH = 32\n")
    model = (
        "import torch\n"
        "from sizes import BATCH\n"
        "@torch.compile(backend='eager')\n"
        "def step(x):\n"
        "    y = x @ x\n"
        "    torch._dynamo.graph_break()\n"
        "    return y.sum()"
    )
    run("1 / 0", model, "%%traceview --blocks 2\nx = torch.ones(BATCH, BATCH)\nwhile 1: step(x)")
    said = capsys.readouterr().out
    assert "Graph break at notebook.ipynb, cell 3, line 6" in said
    assert "TV108" in said
    page = tmp_path / "traceview-notebook" / "report.html"
    assert page.is_file()
    assert said.endswith(f"report: {page}\n{page}\n")
    assert "x" not in shell.user_ns


@pytest.mark.live
def test_an_interrupt_ends_the_cell_and_is_reported(opened, tmp_path, capsys):
    _, run = opened(shells.InteractiveShell)
    began = tmp_path / "began"

    def interrupt():
        while not began.exists() and not ended.wait(0.1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    ended = threading.Event()
    waiting = threading.Thread(target=interrupt)
    waiting.start()
    run(f"%%traceview\nimport pathlib, time\npathlib.Path({str(began)!r}).touch()\ntime.sleep(99)")
    ended.set()
    waiting.join()
    assert "interrupted" in capsys.readouterr().out
    run("later = 1")
