"""A reproducer: what a fault is, which programs may show it, and what is kept of those tried."""

import sys
import time
import zipfile
from pathlib import Path

import msgspec
import pytest
from cli_runs import Cli
from recordings import tables_of, unpack

from traceview.cli.pipeline import tables_of as read
from traceview.collectors.child.standalone import DIFFERS
from traceview.run import Run
from traceview.ticket import reproducer
from traceview.ticket.redaction import Redaction
from traceview.ticket.reproducer import (
    Fault,
    Reproducer,
    Trying,
    candidates,
    fault_of,
    raised,
    recorded_here,
)
from traceview.ticket.source import without_strings

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 3, in f\n    g()\n    ^^^\n'


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        (f"noise\n{TRACEBACK}KeyError: 'buf9'\n", "KeyError", None),
        (
            f"{TRACEBACK}torch._inductor.exc.InductorError: LoweringException: RuntimeError: oh no",
            "RuntimeError",
            "oh",
        ),
        (
            f"{TRACEBACK}torch._dynamo.exc.BackendCompilerFailed: backend='x' raised:\n"
            "TypeError: missing argument\n\nSet TORCHDYNAMO_VERBOSE=1",
            "TypeError",
            "missing",
        ),
        (f"{TRACEBACK}Exception: plain\n", "Exception", "plain"),
        ("InductorError: CppCompileError: C++ compile error", "CppCompileError", "compile"),
        (f"{TRACEBACK}KeyError: 1\n{TRACEBACK}torch.x.UserError: last one", "UserError", "last"),
    ],
)
def test_a_fault_is_the_innermost_exception_of_the_last_traceback(text, kind, word):
    found = raised(text)
    assert found.kind == kind
    assert word is None or word in found.words


def test_no_exception_is_no_fault():
    assert raised("") is None
    assert raised(f"{TRACEBACK}") is None


def ended(code=1, out="", err=""):
    return reproducer._Ended(code, out, err)


def test_the_same_fault_has_the_same_kind_and_most_of_the_words():
    fault = raised(f"{TRACEBACK}ValueError: bad size 3 of 'weights' in the layer")
    other = f"{TRACEBACK}ValueError: bad size 77 of '[masked string 1]' in the layer"
    assert fault.shown_by(ended(err=other))
    assert not fault.shown_by(ended(err=other.replace("ValueError", "KeyError")))
    assert not fault.shown_by(ended(err=f"{TRACEBACK}ValueError: too many values to unpack"))
    assert not fault.shown_by(ended(err="it went well"))
    assert Fault("", signal=6).shown_by(ended(code=-6))
    assert not Fault("", signal=6).shown_by(ended(code=1))
    assert reproducer.DIFFERENCE.shown_by(ended(code=0, out=f"{DIFFERS}\n"))


def test_a_compile_that_failed_gives_its_graph_then_the_script(tmp_path):
    run = Run.open(unpack("bad-cap_compile_crash", tmp_path))
    run.manifest.cwd = str(Path(read(run)["sources"]["file"][0]).parent)
    fault = fault_of(run, read(run), "")
    assert fault.kind == "KeyError"
    found = candidates(run, read(run), fault)
    assert [each.kind for each in found] == ["graph", "script"]
    assert "run_repro(mod, load_args" in found[0].raw
    assert "TORCH_TRACE" not in found[0].raw
    assert "torch.compile" in found[1].raw
    assert found[1].command == ("cap_compile_crash.py",)
    assert candidates(run, read(run), None) == []


def test_a_script_of_the_bisection_comes_first_and_needs_no_error(tmp_path):
    run = Run.open(unpack("bad-gb_item", tmp_path))
    (run.folder / "accuracy").mkdir()
    (run.folder / "accuracy" / "0_relu.py").write_text("print(1)")
    (run.folder / "accuracy" / "1_add.py").write_text("print(2)")
    (run.folder / "accuracy" / "1_add.pt").write_bytes(b"weights")  # its values stay here
    (run.folder / "accuracy" / "2_link.py").symlink_to("/etc/hostname")
    found = candidates(run, tables_of("bad-gb_item"), None)
    assert [(each.kind, each.raw) for each in found] == [("bisected", "print(1)")]


def test_where_results_are_wrong_torch_compares_those_of_the_graphs(tmp_path):
    run = Run.open(unpack("bad-gb_item", tmp_path))
    found = candidates(run, tables_of("bad-gb_item"), None, differs=True)
    assert {(each.kind, each.fault) for each in found} == {("graph", reproducer.INACCURATE)}
    assert len({each.raw for each in found}) == len(found) <= 3
    assert all("accuracy='accuracy', command='run'" in each.raw for each in found)
    error = f"{TRACEBACK}torch._dynamo.debug_utils.AccuracyError: Bad accuracy detected"
    assert reproducer.INACCURATE.shown_by(ended(err=error))


def test_a_signal_is_a_fault_unless_someone_sent_it(tmp_path):
    run = Run.open(unpack("bad-gb_item", tmp_path))
    tables = tables_of("bad-gb_item")
    run.manifest.passes[0].ending.signal = 6
    assert fault_of(run, tables, "") == Fault("", signal=6)
    run.manifest.passes[0].ending.signal = 15
    assert fault_of(run, tables, "") is None


def as_it_is(_, text):
    return text


FAILS = "raise ValueError('no such thing')"


FAULT = raised(f"{TRACEBACK}ValueError: no such thing")


def trying(seconds=60.0):
    return Trying(sys.executable, seconds)


def test_the_first_that_shows_the_fault_is_kept_with_what_was_tried_before():
    those = [
        Reproducer("graph", FAULT, raw="raise KeyError(7)"),
        Reproducer("script", FAULT, raw=FAILS),
    ]
    found = trying().best(those, as_it_is)
    assert (found.kind, found.shown, found.times) == ("script", 3, 3)
    assert found.printed == "ValueError: no such thing"
    assert found.passed_over == [("graph", "it ended with `KeyError: 7`")]


def test_what_is_taken_out_may_be_what_shows_the_fault():
    text = "raise {'on': ValueError, 'off': KeyError}['on']"
    those = [Reproducer("script", raised(f"{TRACEBACK}ValueError"), raw=text)]
    found = trying().best(those, lambda _, text: text.replace("'on'", "'masked'", 1))
    assert (found.shown, found.times, found.before) == (0, 1, True)
    assert "masked" in found.text


def test_a_program_that_goes_on_ends_with_the_time(monkeypatch):
    monkeypatch.setattr(reproducer, "_ONE_S", 1.5)
    began = time.monotonic()
    sleeps = "import subprocess, time\nsubprocess.Popen(['sleep', '300'])\ntime.sleep(300)"
    found = trying().best([Reproducer("script", FAULT, raw=sleeps)], as_it_is)
    assert time.monotonic() - began < 20
    assert (found.shown, found.times) == (0, 1)
    assert found.printed == "nothing more after 2 s"


def test_an_interpreter_that_is_gone_shows_nothing(tmp_path):
    gone = Trying(str(tmp_path / "python"), 30.0)
    found = gone.best([Reproducer("script", FAULT, raw=FAILS)], as_it_is)
    assert (found.shown, found.times) == (0, 1)
    assert "No such file" in found.printed


def test_without_time_nothing_is_run(tmp_path):
    touched = tmp_path / "touched"
    those = [Reproducer("script", FAULT, raw=f"open({str(touched)!r}, 'w')")]
    found = trying(seconds=0.5).best(those, as_it_is)
    assert (found.times, touched.exists()) == (0, False)


def test_a_script_runs_with_its_arguments_in_its_folder_next_to_its_modules(tmp_path):
    (tmp_path / "helpers.py").write_text("class Odd(Exception): pass")
    script = Reproducer(
        "script",
        raised(f"{TRACEBACK}helpers.Odd: with ['--lr', '3']"),
        raw="import os, sys, helpers\nassert os.path.exists('helpers.py')\n"
        "raise helpers.Odd(f'with {sys.argv[1:]}')",
        command=("train.py", "--lr", "3"),
        cwd=str(tmp_path),
    )
    found = trying().best([script], as_it_is)
    assert (found.shown, found.printed) == (3, "helpers.Odd: with ['--lr', '3']")
    assert not (tmp_path / "train.py").exists()


def test_a_folder_that_was_copied_was_not_recorded_here(tmp_path):
    run = Run.open(unpack("bad-cap_compile_crash", tmp_path))
    assert not recorded_here(run)
    now = time.time() * 1e6
    run.manifest.created_us = now - 60e6
    for record in run.manifest.passes:
        record.started_us = now - 30e6
    assert recorded_here(run)
    run.manifest.created_us = now + 60e6
    assert not recorded_here(run)
    run.manifest.passes.clear()
    assert not recorded_here(run)


@pytest.mark.parametrize(("asked", "ran"), [((), False), (("--reproduce",), True)])
def test_no_program_of_a_copied_folder_is_run_unasked(monkeypatch, capfd, tmp_path, asked, ran):
    run, out = unpack("bad-cap_compile_crash", tmp_path), tmp_path / "out"
    opened = Run.open(run)
    log = tmp_path / "ran"
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\necho $1 >> {log}\necho '{FAILS}' >&2\n")
    interpreter.chmod(0o755)
    opened.manifest.python = str(interpreter)
    opened.save()
    cli = Cli(monkeypatch, capfd)
    cli("ticket", "--no-run-env", *asked, "-o", out, run)
    assert cli.code in (0, None)
    assert log.exists() == ran
    said = "It did not show the fault" if ran else "It was not run"
    assert said in (out / "ticket.md").read_text(encoding="utf-8")
    with zipfile.ZipFile(out / "ticket.zip") as archive:
        assert "reproducer.py" in archive.namelist()


def test_what_a_script_needs_to_run_is_no_private_string():
    source = """
torch._inductor.config.cpp.mode = "compile_error"
config.note = "for the board"
model = torch.compile(net, backend="odd_backend", mode="my_mode", note="for my boss")
layer = getattr(net, "layer_norm_7", "or nothing at all")
setattr(net, f"stage_{n}", load("weights of the client"))
"""
    text = without_strings(source, Redaction("standard"))
    for kept in ("compile_error", "odd_backend", "my_mode", "layer_norm_7", "stage_{n}"):
        assert kept in text
    for taken in ("for the board", "for my boss", "or nothing at all", "weights of the client"):
        assert taken not in text


def test_a_kind_is_called_something():
    kinds = msgspec.json.schema(reproducer.Kind)["enum"]
    from traceview.ticket.form import _KINDS

    assert set(_KINDS) == set(kinds)


def test_what_dynamo_explains_is_part_of_a_fault():
    text = (
        f"{TRACEBACK}x.Unsupported: Attempted to call a skipped function\n  Explanation: {{}}\n\n"
    )
    fault = raised(text.format("Dynamo does not know how to trace the builtin open of the module"))
    assert fault.shown_by(
        ended(err=text.format("Dynamo does not know how to trace the builtin open of a module"))
    )
    assert not fault.shown_by(ended(err=text.format("It was marked by disable for a reason")))


def test_the_same_sentence_about_another_name_is_another_fault():
    fault = raised(f"{TRACEBACK}AttributeError: 'TensorBox' object has no attribute 'table'")
    other = f"{TRACEBACK}AttributeError: '_OpNamespace' 'mylib' object has no attribute 'ramp'"
    assert not fault.shown_by(ended(err=other))


STAND_IN = """
def compile(model=None, *, backend, fullgraph, mode=None):
    assert fullgraph and mode is None
    if backend == "aot_eager":
        raise KeyError(3)
    if backend == "aot_eager_decomp_partition":
        raise ValueError("no such thing")
    if backend == "inductor":
        raise SystemExit(7)
    return model
"""


def test_a_script_runs_with_each_backend_in_place_of_its_own(tmp_path):
    (tmp_path / "torch.py").write_text(STAND_IN)
    script = (
        "import sys, torch\nassert sys.argv[1:] == ['8'] and __name__ == '__main__'\n"
        "torch.compile(lambda x: x, backend='mine', mode='default', fullgraph=True)(1)"
    )
    whole = Reproducer("script", FAULT, raw=script, command=("train.py", "8"), cwd=str(tmp_path))
    assert trying().ladder(whole) == {
        "eager": "runs",
        "aot_eager": "fails in another way: KeyError: 3",
        "aot_eager_decomp_partition": "fails",
        "inductor": "fails in another way: exit code 7",
    }
    assert trying(seconds=0.5).ladder(whole) == {}


@pytest.mark.live
def test_torch_makes_the_graph_smaller_on_which_a_backend_failed(tmp_path):
    script = """
import torch


@torch.compile(backend="relu_compile_error_TESTING_ONLY")
def scores(x, weight):
    return torch.relu((x @ weight).tanh() + 1.0).exp().sum(-1) * 2.0


scores(torch.randn(4, 8), torch.randn(8, 8))
"""
    (tmp_path / "train.py").write_text(script)
    error = f"{TRACEBACK}x.BackendCompilerFailed: backend='x' raised:\nReluCompileError: "
    fault, command = raised(error), ("train.py",)
    whole = Reproducer("script", fault, "", script, command, str(tmp_path), of_backend=True)
    found = trying(240.0).best([whole], as_it_is)
    assert (found.kind, found.shown, found.times) == ("minified", 3, 3)
    assert "torch.relu" in found.text
    assert "tanh" not in found.text
    assert "save_dir=None" in found.text
    assert "traceview-" not in found.text  # no place of this machine
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
