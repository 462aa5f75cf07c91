"""Notebooks: what is read of them, what is left out, and how they run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traceview.collectors import CollectOptions
from traceview.collectors.child import notebook
from traceview.collectors.child.notebook import NotANotebook
from traceview.collectors.probe import find_target
from traceview.errors import TargetUnusable

RUNNER = Path(notebook.__file__)


def code(source):
    return {"cell_type": "code", "source": source}


def written(folder, *cells, **more):
    path = folder / "nb.ipynb"
    path.write_text(json.dumps({"cells": list(cells), "nbformat": 4, **more}))
    return str(path)


def read_one(folder, source):
    (cell,) = notebook.read(written(folder, code(source)))
    return cell


def ran(path, *args):
    return subprocess.run(
        [sys.executable, RUNNER, path, *args], capture_output=True, text=True, cwd="/"
    )


def test_cells_are_numbered_as_jupyter_shows_them(tmp_path):
    markdown = {"cell_type": "markdown", "source": ["x = 1"]}
    cells = notebook.read(
        written(tmp_path, markdown, code(["a = 1\n", "b = 2"]), code(" \n"), code("c"))
    )
    assert [(cell.number, cell.python) for cell in cells] == [(1, "a = 1\nb = 2"), (2, "c")]
    assert cells[1].name == f"{tmp_path}/nb.ipynb cell 2"


def test_magics_and_shell_lines_are_left_out_and_lines_stay(tmp_path):
    source = (
        "%matplotlib inline\n"
        "!pip install \\\n   torch\n"
        "files = !ls\n"
        "if True:\n"
        "    %load_ext autoreload\n"
        "torch.compile?\n"
        "x = (7\n% 4)\n"
        "text = '''\n!kept\n'''"
    )
    cell = read_one(tmp_path, source)
    assert cell.left_out == (
        "%matplotlib inline",
        "!pip install \\",
        "files = !ls",
        "%load_ext autoreload",
        "torch.compile?",
    )
    names = {}
    exec(compile(cell.python, "cell", "exec"), names)
    assert (names["x"], names["text"]) == (3, "\n!kept\n")
    assert len(cell.python.split("\n")) == len(source.split("\n"))


@pytest.mark.parametrize(
    ("name", "repeated"), [("time", False), ("capture out", False), ("timeit -n 5", True)]
)
def test_the_body_of_a_timed_cell_is_run(tmp_path, name, repeated):
    cell = read_one(tmp_path, f"%%{name}\ny = 2")
    assert (cell.python, cell.left_out, cell.repeated) == ("\ny = 2", (), repeated)


def test_a_timed_line_runs_its_statement(tmp_path):
    assert read_one(tmp_path, "%time y = f(x)").python == "y = f(x)"
    cell = read_one(tmp_path, "%timeit -n 10 -r 3 f(x)")
    assert cell.python == "for __ in __timeit__(): f(x)"
    calls = []
    exec(cell.python, {"__timeit__": lambda: range(3), "f": calls.append, "x": 1})
    assert calls == [1, 1, 1]


def test_a_cell_of_another_language_is_left_out(tmp_path):
    cell = read_one(tmp_path, "%%bash\nrm -rf /nowhere")
    assert (cell.python.strip(), cell.left_out) == ("", ("%%bash",))


def test_python_that_is_wrong_stays_wrong(tmp_path):
    cell = read_one(tmp_path, "x = = 1")
    assert (cell.python, cell.left_out) == ("x = = 1", ())


def test_one_namespace_arguments_and_the_line_of_an_error(tmp_path):
    path = written(
        tmp_path,
        code("import sys\nclass A: pass\nprint(sys.argv[1:], __name__, A.__module__, sys.path[0])"),
        code(
            "import __main__, pickle\nassert __main__.A is A\n"
            "pickle.loads(pickle.dumps(A()))\n\n1 / 0"
        ),
    )
    done = ran(path, "--lr", "1")
    assert done.stdout == f"['--lr', '1'] __main__ __main__ {tmp_path}\n"
    assert done.returncode == 1
    assert f'File "{path} cell 2", line 5, in <module>\n    1 / 0' in done.stderr
    assert str(RUNNER) not in done.stderr


def test_source_is_where_dynamo_and_inspect_look(tmp_path):
    text = (
        "import inspect, linecache\ndef f():\n    return 1\n"
        "linecache.checkcache()\nprint(inspect.getsource(f))"
    )
    done = ran(written(tmp_path, code(text)))
    assert done.stdout.strip() == "def f():\n    return 1", done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"cells": 5}',
        "[" * 100_000,
        '{"cells": [], "metadata": {"language_info": {"name": "R"}}}',
    ],
)
def test_what_is_no_notebook(tmp_path, text):
    path = tmp_path / "nb.ipynb"
    path.write_text(text)
    with pytest.raises(NotANotebook):
        notebook.read(str(path))
    with pytest.raises(TargetUnusable) as caught:
        find_target(CollectOptions(kind="script", target=str(path)), None)
    assert caught.value.slug == "not-a-notebook"


def test_odd_cells(tmp_path):
    odd = [None, 3, {}, {"cell_type": "code"}, code(7), code([1, "x = 1", None]), {"cell_type": []}]
    (cell,) = notebook.read(written(tmp_path, *odd, metadata=[]))
    assert cell.python == "x = 1"


def test_sizes_are_limited(tmp_path, monkeypatch):
    with pytest.raises(NotANotebook, match="characters"):
        notebook.read(written(tmp_path, code("#" * (notebook.MAX_CELL_CHARACTERS + 1))))
    monkeypatch.setattr(notebook, "MAX_BYTES", 10)
    with pytest.raises(NotANotebook, match="larger"):
        notebook.read(written(tmp_path, code("x")))


def test_the_command_and_torchruns():
    one = CollectOptions(kind="script", target="nb.ipynb", args=("--lr", "1"))
    assert one.command("py") == ["py", str(RUNNER), "nb.ipynb", "--lr", "1"]
    two = CollectOptions(kind="script", target="nb.ipynb", nproc=2)
    assert two.command("py")[-2:] == [str(RUNNER), "nb.ipynb"]


def test_the_parent_says_what_is_left_out(tmp_path):
    said = []

    class Console:
        def say(self, text):
            said.append(text)

        def progress(self, text):
            pass

    path = written(tmp_path, code("x = 1"), code("!pip install torch"))
    target = find_target(CollectOptions(kind="script", target=path), Console())
    assert said == ["Left out of cell 2, which is no Python: !pip install torch"]
    assert target.notes == tuple(said)
