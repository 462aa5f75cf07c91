"""A script that replaces itself, and its children: followed, and left alone."""

import importlib.util
import sys

import pytest
from child_runs import run_child, write_script

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

WORK = """
import torch
f = torch.compile(lambda x: x + 1, backend="eager")
for _ in range(4):
    f(torch.ones(2))
"""
WAYS = [
    "os.execv(sys.executable, [sys.executable, *sys.argv])",
    "os.execl(sys.executable, sys.executable, *sys.argv)",
    "os.execvp('python', ['python', *sys.argv])",
    "os.execve(sys.executable, [sys.executable, *sys.argv], {'AGAIN': '1', 'PYTHONPATH': '/x'})",
    "os.execve(sys.executable, [sys.executable, *sys.argv], {b'AGAIN': b'1'})",
    "import torch; os.execv(sys.executable, [sys.executable, *sys.argv])",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_script_that_replaces_itself_is_followed(tmp_path, way):
    path = "/x" if "/x" in way else None
    script = write_script(
        tmp_path,
        "import os, sys\nif not os.environ.get('AGAIN'):\n    os.environ['AGAIN'] = '1'\n"
        f"    {way}\n{WORK}\n"
        f"assert os.environ.get('PYTHONPATH') == {path!r}\n"
        "assert not [name for name in os.environ if 'TRACEVIEW' in name]\n"
        "print(sys.argv[1:])",
    )
    run = run_child(script, "--lr", "1", env={"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"})
    assert run.returncode == 0, run.err
    assert run.out == "['--lr', '1']\n"
    assert [region["kind"] for region in run.of("region")] == ["function"]
    assert run.of("region_end")[-1]["calls"] >= 4
    assert len(run.of("process")) == 2
    assert len(run.files) == 1


def test_a_fork_that_becomes_another_program_is_not_followed(tmp_path):
    script = write_script(
        tmp_path,
        "import os, sys\nif len(sys.argv) > 1:\n    sys.exit()\npid = os.fork()\n"
        "if not pid:\n    os.execv(sys.executable, [sys.executable, *sys.argv, 'child'])\n"
        f"os.waitpid(pid, 0)\n{WORK}",
    )
    run = run_child(script, fresh=True)
    assert run.returncode == 0, run.err
    assert len(run.of("process")) == 1


CHILDREN = """
import multiprocessing, os, subprocess, sys
COMPILES = '''
import torch
def f(x):
    torch._dynamo.graph_break()
    return x + 1
f = torch.compile(f, backend="eager")
f(torch.ones(2)); f(torch.ones(3))
'''
if "before" in sys.argv:
    subprocess.run([sys.executable, "-c", COMPILES], check=True)
import torch
def work():
    exec(COMPILES, {})
if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", COMPILES], check=True)
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    torch._logging.set_logs(recompiles=True)
    work()
    print(os.environ.get("TORCH_LOGS"))
"""


@pytest.mark.parametrize("own", [None, "recompiles"])
def test_children_that_compile_print_what_the_user_asked_for(tmp_path, own):
    log = tmp_path / "logs.txt"
    given = {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_LOGS_OUT": str(log)}
    run = run_child(
        write_script(tmp_path, CHILDREN), "before", env=given, torch_logs=own,
        user_logs=[own] if own else [], variables=["TORCH_LOGS", "TORCH_LOGS_OUT"],
    )  # fmt: skip
    assert run.returncode == 0, run.err
    assert run.out == f"{own}\n"
    assert "[__graph_breaks]" in log.read_text(), "of the script itself"
    assert "[__recompiles]" in log.read_text()
    if own is None:
        assert run.err == ""
    else:
        said = [line for line in run.err.splitlines() if "Recompiling function" in line]
        assert len({line.split()[2] for line in said}) == 5, "processes: spawn runs it again"
        assert "[__graph_breaks]" not in run.err
