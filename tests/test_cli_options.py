"""What is traceview's on the command line, and what is the script's."""

from __future__ import annotations

import pytest

from traceview.cli.scripts import collect_command as collect
from traceview.cli.scripts import diagnose_command as diagnose


def parsed(command, *args):
    return command.make_context("traceview", list(args)).params


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


def test_two_dashes_end_our_options():
    assert parsed(diagnose, "--", "-odd.py", "-m")["target"] == ("-odd.py", "-m")
