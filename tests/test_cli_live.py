"""``traceview diagnose`` from end to end: what it says, its exit code, and that the page is there.

Scripts compile with the backends ``eager`` and ``aot_eager`` where they can: these take seconds.
"""

import importlib.util
import json
import signal
import subprocess
import sys

import pytest
from cli_runs import Cli, diagnose, served
from cli_runs import command as run_command

from traceview.run import Run

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

STEPS = """
import os, sys, torch
model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
def train(steps):
    for _ in range(steps):
        model(torch.randn(2, 4))
"""


def check(folder, done, code, said=""):
    """The exit code, the words on stdout, the page, and no traceback of ours."""
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    assert done.returncode == code, out + err
    assert said in " ".join(out.split())
    assert "/traceview/cli/" not in err
    assert (folder / "out" / "report.html").exists()
    return out, err


def test_a_script_that_never_compiles(tmp_path):
    body = "import torch\nfor _ in range(5): torch.randn(4).sin()"
    check(tmp_path, diagnose(tmp_path, body), 0, "torch.compile")
    verdict = json.loads((tmp_path / "out/diagnosis.json").read_text())["verdict"]
    assert verdict["outcome"] == "not_compiled"


def test_json_is_alone_on_stdout_while_the_script_reads_prints_forks_and_moves(tmp_path):
    body = (
        STEPS
        + """
if __name__ == "__main__":
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print("sum", sum(pool.map(abs, range(-3, 0))), flush=True)
    os.chdir("/")
    print("given", sys.stdin.read(), sys.argv[1:], flush=True)
    sys.stdout.buffer.write(b"\\x00\\xff{]\\n")
    train(3)
"""
    )
    done = diagnose(
        tmp_path, body, "--json", "--no-baseline",
        arguments=("--json", "-o", "x", "--"), given=b"some text",
    )  # fmt: skip
    out, err = check(tmp_path, done, 0)
    assert json.loads(out)["format"] == 2
    assert "sum 6\ngiven some text ['--json', '-o', 'x', '--']\n" in err
    assert b"\x00\xff{]\n" in done.stderr


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no torch yet')\n" + STEPS, "raised ValueError at train.py:1"),
        (STEPS + "raise ValueError('early')", "raised ValueError at train.py:7"),
        (STEPS + "train(2)\nraise ValueError('late')", "raised ValueError at train.py:8"),
        ("import sys, torch\nsys.exit(3)", "exit code 3"),
        ("import os, torch\nos.kill(os.getpid(), 9)", "signal"),
    ],
    ids=["before torch", "before compiling", "after compiling", "sys.exit", "SIGKILL"],
)
def test_a_script_that_fails(tmp_path, body, said):
    check(tmp_path, diagnose(tmp_path, body, "--no-baseline"), 3, said)


def test_a_crash_in_the_compiled_stance_only(tmp_path):
    body = """
    import torch
    @torch.compile(fullgraph=True, backend="eager")
    def step(x):
        torch._dynamo.graph_break()
        return x.sin()
    for _ in range(20):
        step(torch.randn(3))
    """
    check(tmp_path, diagnose(tmp_path, body), 3, "eager")
    run = Run.open(tmp_path / "out")
    assert [record.name for record in run.manifest.passes] == ["cold", "baseline"]
    cold, baseline = (record.ending for record in run.manifest.passes)
    assert (cold.code, baseline.kind) == (1, "stopped")
    raw = run.raw(run.manifest.passes[0])
    lines = [line for path in raw.glob("events-*.jsonl") for line in path.read_text().splitlines()]
    (error,) = [event for event in map(json.loads, lines) if event["event"] == "error"]
    assert error["stance"] == "compiled"
    assert b"Unsupported" in (raw / "stderr.txt").read_bytes()


def test_a_script_that_recompiles_for_ever_ends_at_its_time(tmp_path):
    body = (
        STEPS
        + """
torch._dynamo.config.cache_size_limit = torch._dynamo.config.recompile_limit = 10**6
model = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)
n = 0
while True:
    n += 1
    model(torch.randn(n), str(n) and n)
"""
    )
    done = diagnose(tmp_path, body, "--timeout", "3", "--no-baseline")
    assert done.returncode in (0, 3)
    check(tmp_path, done, done.returncode)


LIVE = """
import torch
@torch.compile(backend="aot_eager", dynamic=False)
def train_step(x, n):
    return (x * n).sin().sum()
x = torch.ones(8, requires_grad=True)
for step in range(2000):
    train_step(x, 3 if step < 500 else 4).backward()
"""


def test_live_lines_tell_of_compiles_recompiles_and_blocks_while_it_runs(tmp_path):
    live = tmp_path / "live.jsonl"
    ran = diagnose(tmp_path, LIVE, "--live", str(live), "--blocks", "3", "--run-to-end")
    assert ran.returncode == 0
    lines = [json.loads(line) for line in live.read_text().splitlines()]
    began = [each for each in lines if each["event"] == "compile_began"]
    forward = [each for each in began if each["direction"] == "forward"]
    assert [(each["function"], each["reason"]) for each in forward] == [
        ("train_step", None),
        ("train_step", "n == 3"),
    ]
    assert forward[0]["file"] == str(tmp_path / "train.py")
    ended = [each for each in lines if each["event"] == "compile_ended"]
    assert len(ended) == len(began)
    assert all(0 < each["seconds"] < 60 for each in ended)
    assert {"compile_phase", "phase", "blocks"} <= {each["event"] for each in lines}
    assert (lines[0]["event"], lines[-1]["event"]) == ("pass_began", "pass_ended")
    assert b"compiling train_step" not in ran.stdout + ran.stderr  # no terminal


def test_a_live_file_that_cannot_be_written(tmp_path):
    ran = diagnose(tmp_path, LIVE, "--live", str(tmp_path / "none" / "live.jsonl"))
    assert ran.returncode == 2
    assert b"none/live.jsonl can't be written" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = diagnose(tmp_path, "print('hello')")
    assert b"out already exists, so this run is written to out-2" in done.stderr
    assert (tmp_path / "out-2" / "report.html").exists()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.fixture
def refused(monkeypatch, capfd, tmp_path):
    """A function: words → the exit code, and what was said where nothing was run."""
    monkeypatch.chdir(tmp_path)
    cli = Cli(monkeypatch, capfd)

    def refuse(*words):
        assert cli(*words).out == ""
        return cli.code, cli.err

    return refuse


def test_what_cannot_be_run(refused, tmp_path):
    (tmp_path / "bad.py").write_text("def f(:\n")
    code, said = refused("diagnose", "--", "no.py")
    assert (code, "Can't open the script no.py" in said) == (2, True)
    code, said = refused("diagnose", "bad.py")
    assert (code, "line 1, so nothing was run" in said) == (2, True)
    code, said = refused("diagnose", "-m", "no_such_module")
    assert (code, "no module named no_such_module" in said) == (2, True)


def test_an_interpreter_without_torch(refused, tmp_path):
    words = [sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"]
    subprocess.run(words, check=True)
    (tmp_path / "a.py").write_text("")
    python = tmp_path / "env" / "bin" / "python"
    code, said = refused("diagnose", "--python", python, "a.py")
    assert (code, "has no torch" in said) == (2, True)
    assert list(tmp_path.glob("traceview-*")) == []


@pytest.mark.parametrize("command", ["diagnose", "collect"])
def test_an_interrupted_command_does_not_exit_with_0(tmp_path, command):
    steps = "import os, torch\n" if command == "diagnose" else "import os\n"
    body = "import signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)"
    script = tmp_path / "train.py"
    script.write_text(steps + body)
    done = subprocess.run(
        run_command(command, "-o", tmp_path / "out", script), capture_output=True, cwd=tmp_path,
        timeout=120, check=False, preexec_fn=_interruptible,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert b"KeyboardInterrupt" in done.stderr, "the script got it, at once"
    assert Run.open(tmp_path / "out").manifest.passes[0].ending.kind == "interrupted"
    assert (tmp_path / "out/report.html").exists() == (command == "diagnose")


def _interruptible():
    """A background job's children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_no_secret_of_the_command_line_or_the_environment_is_in_what_we_write(
    tmp_path, monkeypatch, capfd
):
    secret = "s3cr3t-w0rd"
    url = f"redis://:{secret}@cache:6379/0"
    monkeypatch.setenv("TORCHINDUCTOR_REMOTE_CACHE_URL", url)
    monkeypatch.setenv("TRITON_TOKEN", secret)
    monkeypatch.setenv("OWN_NOTE", "no secret, but not ours")
    words = ("--password", secret, f"--token={secret}", f"--db={url}", "--lr", "0.5")
    body = STEPS + "\nassert sys.argv[-2:] == ['--lr', '0.5'] and len(sys.argv) == 7, sys.argv\n"
    body += f"assert sys.argv[2] == '{secret[:3]}' + '{secret[3:]}'\n"
    body += "train(3)\nurl = os.environ['TORCHINDUCTOR_REMOTE_CACHE_URL']\n"
    body += "raise RuntimeError(f'no cache at {url}')"
    done = diagnose(tmp_path, body, arguments=words)
    check(tmp_path, done, 3, "no cache at redis://:<masked>@cache")
    cli, run = Cli(monkeypatch, capfd), tmp_path / "out"
    shown = [done.stdout.decode(), done.stderr.decode().partition("Traceback")[0]]
    for asked in (
        ("report", run, "--markdown"),
        ("report", run, "--json"),
        ("check", run, "--max-breaks", "0", "--format", "sarif"),
        ("compare", run, run, "--json"),
        ("compare", run, run, "--html"),
        ("query", run, "select * from environment", "--format", "json"),
        ("query", run, "select * from runs", "--format", "json"),
    ):
        shown.append(cli(*asked).out)
    ours = [
        path for path in run.rglob("*") if path.suffix in (".json", ".jsonl", ".html", ".parquet")
    ]
    assert {"run.json", "report.html", "diagnosis.json"} <= {path.name for path in ours}
    theirs = (run / "raw/cold/structured", run / "tlparse")
    shown += [
        path.read_bytes().decode(errors="replace")
        for path in ours
        if not any(folder in path.parents for folder in theirs)
    ]
    assert not [text for text in shown if secret in text or "not ours" in text]
    manifest = Run.open(run).manifest
    assert manifest.target[1:] == [
        "--password", "<masked>", "--token=<masked>", "--db=redis://:<masked>@cache:6379/0",
        "--lr", "0.5",
    ]  # fmt: skip
    assert any("TORCHINDUCTOR_REMOTE_CACHE_URL" in note for note in manifest.notes)
    cli("try", run)
    assert cli.code == 2
    assert "has a mask in place of a secret among its script's arguments." in cli.err


WRONG_BACKWARD = """
import torch
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * (3 if torch.compiler.is_compiling() else 2)
net = torch.nn.Linear(4, 4)
@torch.compile(backend="aot_eager")
def loss(x):
    return Twice.apply(net(x)).square().mean()
for _ in range(100):
    loss(torch.randn(8, 4)).backward()
"""


def accuracy(folder, body, *options):
    (folder / "train.py").write_text(body)
    words = ("accuracy", "-o", folder / "out", *options, folder / "train.py")
    done = served(*words, cwd=folder)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "/traceview/cli/" not in err
    return done.returncode, out, err


def test_accuracy_finds_a_backward_that_is_wrong(tmp_path):
    code, out, err = accuracy(tmp_path, WRONG_BACKWARD, "--json", "--bisect")
    answer = json.loads(out)
    assert (code, answer["format"], answer["verdict"]) == (1, 1, "differ"), err
    first = answer["differences"][0]
    named = {"what": "gradient", "direction": "backward", "stage": "eager", "callable": "loss"}
    assert {key: first[key] for key in named} == named
    assert {row["name"] for row in answer["differences"]} == {
        "gradient of weight net.weight", "gradient of weight net.bias",
    }  # fmt: skip
    assert first["relative_error"] == pytest.approx(0.5, rel=1e-3)
    assert first["eager_error"] < 1e-5
    assert first["callable_location"]["line"] in (11, 12)
    assert (first["operator"], first["location"]["line"]) == ("aten.mul.Tensor", 9)
    (fault,) = answer["faults"]
    assert (fault["part"], fault["graph"], fault["script"]) == ("capture", "backward", None)


def test_accuracy_of_what_agrees_compiles_nothing_or_fails(tmp_path):
    code, out, _ = accuracy(tmp_path, STEPS + "train(200)")
    assert (code, out.splitlines()[0]) == (
        0,
        "Compiled results agree with eager's in 1 callable.",
    )
    code, out, _ = accuracy(tmp_path, "import torch\ntorch.randn(4).sin()", "--force")
    assert (code, "no compiled callable was called" in out) == (4, True)
    code, _, err = accuracy(tmp_path, STEPS + "train(2)\n1 / 0", "--force")
    assert (code, "The script failed" in err) == (3, True)
    assert accuracy(tmp_path, STEPS, "--no-such-option")[0] == 2
