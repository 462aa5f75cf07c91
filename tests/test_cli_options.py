"""What is traceview's on the command line, and what is the script's."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.shell_completion import BashComplete

from traceview.cli import traceview
from traceview.cli.scripts import collect_command as collect
from traceview.cli.scripts import diagnose_command as diagnose


def parsed(command, *args):
    return command.make_context("traceview", list(args)).params


@pytest.mark.parametrize("command", ["accuracy", "try", "sweep"])
@pytest.mark.parametrize(
    ("text", "meant"), [("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0), ("240", 240.0)]
)
def test_a_budget_is_a_time_or_plain_seconds(command, text, meant):
    """The same words with all commands that have one."""
    found = traceview.get_command(click.Context(traceview), command)
    (option,) = (each for each in found.params if each.name == "budget")
    with click.Context(found) as ctx:
        assert option.process_value(ctx, text) == meant
        for wrong in ("soon", "0", "-3", "5 days"):
            with pytest.raises(click.BadParameter, match="no time such as 90s"):
                option.process_value(ctx, wrong)


@pytest.mark.parametrize("command", [diagnose, collect])
def test_everything_after_the_script_is_the_scripts(command):
    params = parsed(command, "--blocks", "3", "train.py", "--blocks", "9", "-m", "x", "-o", "y")
    assert params["blocks"] == 3
    assert params["module"] is None
    assert params["target"] == ("train.py", "--blocks", "9", "-m", "x", "-o", "y")


@pytest.mark.parametrize("command", [diagnose, collect])
def test_everything_after_the_module_is_the_modules(command):
    params = parsed(command, "--blocks", "3", "-m", "pkg.train", "--steps", "260", "-m", "--warm")
    assert (params["blocks"], params["steps"], params["warm"]) == (3, None, False)
    assert params["module"] == "pkg.train"
    assert params["target"] == ("--steps", "260", "-m", "--warm")


def test_an_options_value_is_no_option():
    params = parsed(diagnose, "-o", "-m", "--run-to-end", "train.py", "-m")
    assert str(params["out"]) == "-m"
    assert params["run_to_end"] is True
    assert params["target"] == ("train.py", "-m")


def test_arguments_of_torch_compile():
    params = parsed(diagnose, "--compile-options", "mode=reduce-overhead, dynamic=True", "train.py")
    assert params["compile_options"] == {"mode": "reduce-overhead", "dynamic": True}
    assert parsed(diagnose, "train.py")["compile_options"] == {}


@pytest.mark.parametrize("text", ["speed=2", "mode", "dynamic=maybe", "mode=x,,"])
def test_arguments_that_torch_compile_does_not_have(text):
    with pytest.raises(click.BadParameter, match="is none of mode=WORD, backend=NAME"):
        parsed(diagnose, "--compile-options", text, "train.py")


def test_two_dashes_end_our_options():
    assert parsed(diagnose, "--", "-odd.py", "-m")["target"] == ("-odd.py", "-m")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dia"], {("plain", "diagnose")}),
        (["diagnose", "--no-b"], {("plain", "--no-baseline")}),
        (["diagnose", "tr"], {("file", "tr")}),
        (["check", ""], {("file", "")}),
        (["compare", "a", "b"], {("file", "b")}),
        (["explain", "gb-it"], {("plain", "gb-item")}),
    ],
)
def test_shell_completion(words, expected):
    complete = BashComplete(traceview, {}, "traceview", "_TRACEVIEW_COMPLETE")
    found = complete.get_completions(words[:-1], words[-1])
    assert {(item.type, item.value) for item in found} == expected


def test_the_shells_script_is_printed():
    variables = {**os.environ, "_TRACEVIEW_COMPLETE": "zsh_source"}
    command = [sys.executable, "-c", "from traceview.__main__ import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert "#compdef traceview" in done.stdout
