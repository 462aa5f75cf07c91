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
#: How a script replaces itself: each process takes the next way, the last one works.
WAYS = [
    "os.execv(sys.executable, [sys.executable, *sys.argv])",
    "os.execl(sys.executable, sys.executable, *sys.argv)",
    "os.execvp('python', ['python', *sys.argv])",
    "os.execve(sys.executable, [sys.executable, *sys.argv], {'N': '4', 'PYTHONPATH': '/x'})",
    "os.execve(sys.executable, [sys.executable, *sys.argv], {b'N': b'5'})",
    "import torch; os.execv(sys.executable, [sys.executable, *sys.argv])",
]
REPLACED = f"""
import os, sys
done = int(os.environ.get('N', 0))
ours = [name for name in os.environ if 'TRACEVIEW' in name]
print(done, sys.argv[1:], os.environ.get('PYTHONPATH'), ours, flush=True)
os.environ['N'] = str(done + 1)
if done < {len(WAYS)}:
    exec({WAYS!r}[done])
"""


def test_a_script_that_replaces_itself_is_followed_whatever_way_it_takes(tmp_path):
    script = write_script(tmp_path, REPLACED + WORK)
    env = {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"}
    run = run_child(script, "--lr", "1", env=env, fresh=True)
    assert run.returncode == 0, run.err
    paths = ["/x" if "/x" in way else None for way in ("", *WAYS)]
    assert run.out.splitlines() == [
        f"{done} ['--lr', '1'] {path} []" for done, path in enumerate(paths)
    ]
    assert len(run.of("process")) == 1 + len(WAYS), "those that were followed"
    assert [region["kind"] for region in run.of("region")] == ["function"]
    assert run.of("region_end")[-1]["calls"] >= 4
    assert len(run.files) == 1


COMPILES = """
import torch
def f(x):
    torch._dynamo.graph_break()
    return x + 1
f = torch.compile(f, backend="eager")
f(torch.ones(2)); f(torch.ones(3))
"""
#: With the user's variables alone a child prints what it does without us: none compiles to show it.
HAS = """
import os
assert os.environ.get("TORCH_LOGS") == {own!r}
assert not [name for name in os.environ if "TRACEVIEW" in name or name == "TORCH_TRACE"]
"""
CHILDREN = """
import multiprocessing, os, subprocess, sys
def work():
    exec({has!r}, {{}})
if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", {has!r}], check=True)
    import torch
    subprocess.run([sys.executable, "-c", {has!r}], check=True)
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 0
    torch._logging.set_logs(recompiles=True)
    exec({compiles!r}, {{}})
    print(os.environ.get("TORCH_LOGS"))
"""


@pytest.mark.parametrize("own", [None, "recompiles"])
def test_children_print_what_the_user_asked_for(tmp_path, own):
    log = tmp_path / "logs.txt"
    given = {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_LOGS_OUT": str(log)}
    script = CHILDREN.format(has=HAS.format(own=own), compiles=COMPILES)
    run = run_child(
        write_script(tmp_path, script), env=given, fresh=True, torch_logs=own,
        user_logs=[own] if own else [], variables=["TORCH_LOGS", "TORCH_LOGS_OUT"],
    )  # fmt: skip
    assert run.returncode == 0, run.err
    assert run.out == f"{own}\n"
    assert "[__graph_breaks]" in log.read_text(), "of the script itself"
    assert "[__recompiles]" in log.read_text()
    if own is None:
        assert run.err == ""
    else:
        assert "Recompiling function" in run.err
        assert "[__graph_breaks]" not in run.err
