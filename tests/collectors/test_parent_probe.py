"""The interpreter and the target are checked before anything is run."""

import json
from pathlib import Path

import pytest
from parent_helpers import Listener, environment, write_script

from traceview.collectors import CollectOptions
from traceview.collectors.ask_target import MARK
from traceview.collectors.probe import default_python, find_target
from traceview.errors import TargetUnusable


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("probe")


def script_in(folder, body="x = 1\n"):
    return write_script(folder, body)


def refused(python, target, kind="script", console=None):
    options = CollectOptions(kind=kind, target=target, python=python)
    with pytest.raises(TargetUnusable) as caught:
        find_target(options, console or Listener())
    assert caught.value.fact.endswith(".")
    assert caught.value.remedy.endswith(".")
    return caught.value


def test_what_the_target_is(home, tmp_path):
    options = CollectOptions("script", script_in(tmp_path), python=environment(home))
    target = find_target(options, Listener())
    assert target.torch_version == "2.11.0+cu130"
    assert target.log_names == {"dynamo", "graph_breaks", "recompiles", "perf_hints"}
    assert target.switches == {"INDUCTOR_PROVENANCE"}
    assert target.script_root == str(tmp_path.resolve())


def test_no_torch(home, tmp_path):
    error = refused(environment(home, None), script_in(tmp_path))
    assert (error.slug, error.exit_code) == ("no-torch", 2)
    assert "--python" in error.remedy


@pytest.mark.parametrize("version", ["2.5.1", "1.13.0+cu117", "unknown"])
def test_torch_too_old(home, tmp_path, version):
    error = refused(environment(home, version), script_in(tmp_path))
    assert error.slug == "torch-too-old"
    assert version in error.fact


def test_a_development_build_of_torch_is_read_as_its_version(home, tmp_path):
    python = environment(home, "2.10.0a0+git1234")
    options = CollectOptions("script", script_in(tmp_path), python=python)
    assert find_target(options, Listener()).torch_version == "2.10.0a0+git1234"


def test_a_folder_named_torch_is_no_torch(home, tmp_path):
    (tmp_path / "torch").mkdir()
    assert refused(environment(home, None), script_in(tmp_path)).slug == "no-torch"


def test_no_such_interpreter(tmp_path):
    assert refused("/nowhere/python", script_in(tmp_path)).slug == "no-interpreter"


def test_an_interpreter_that_is_none(tmp_path):
    error = refused("/bin/false", script_in(tmp_path))
    assert error.slug == "not-python"


def test_python_too_old(tmp_path):
    shim = tmp_path / "python3.8"
    answer = {"python_version": [3, 8, 10], "torch_version": "2.4.1"}
    shim.write_text(f"#!/bin/sh\necho '{MARK}{json.dumps(answer)}'\n")
    shim.chmod(0o755)
    error = refused(str(shim), script_in(tmp_path))
    assert error.slug == "python-too-old"
    assert "3.8.10" in error.fact


def test_script_missing(home, tmp_path):
    error = refused(environment(home), str(tmp_path / "none.py"))
    assert (error.slug, error.exit_code) == ("script-missing", 2)


def test_script_is_a_folder(home, tmp_path):
    assert refused(environment(home), str(tmp_path)).slug == "script-is-folder"


def test_a_folder_with_a_main_is_a_script_as_for_python(home, tmp_path):
    (tmp_path / "__main__.py").write_text("")
    options = CollectOptions("script", str(tmp_path), python=environment(home))
    assert find_target(options, Listener()).script_root == str(tmp_path.resolve())


def test_syntax_error_is_told_in_pythons_own_words_and_nothing_runs(home, tmp_path):
    marker = tmp_path / "ran"
    console = Listener()
    body = f"open({str(marker)!r}, 'w')\ndef f(:\n    pass\n"
    error = refused(environment(home), script_in(tmp_path, body), console=console)
    assert (error.slug, error.exit_code) == ("syntax-error", 2)
    assert "SyntaxError" in console.said[0]
    assert "def f(:" in console.said[0]
    assert not marker.exists()


def test_a_script_with_null_bytes_later_on_is_a_syntax_error(home, tmp_path):
    path = tmp_path / "nulls.py"
    path.write_bytes(b"x = 1\n" * 300 + b"\0")
    assert refused(environment(home), str(path)).slug == "syntax-error"


def test_a_zip_application_is_left_to_python(home, tmp_path):
    path = tmp_path / "app.pyz"
    path.write_bytes(b"PK\x03\x04\0\0\0\0")
    options = CollectOptions("script", str(path), python=environment(home))
    assert find_target(options, Listener()).python == environment(home)


def test_asking_about_a_module_runs_none_of_its_packages(home, tmp_path, monkeypatch):
    package = tmp_path / "pkg" / "sub"
    package.mkdir(parents=True)
    (tmp_path / "pkg" / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "train.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    python = environment(home)
    target = find_target(CollectOptions("module", "pkg.sub.train", python=python), Listener())
    assert target.script_root == str(tmp_path / "pkg")
    assert refused(python, "pkg.sub", "module").slug == "module-is-package"
    assert refused(python, "pkg.other", "module").slug == "module-missing"
    (package / "train.py").write_text("x = (\n")
    assert refused(python, "pkg.sub.train", "module").slug == "syntax-error"


def test_a_json_module_in_the_working_folder_is_not_run_by_asking(home, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise RuntimeError('imported')")
    monkeypatch.chdir(tmp_path)
    options = CollectOptions("script", script_in(tmp_path), python=environment(home))
    assert find_target(options, Listener()).torch_version == "2.11.0+cu130"


def test_the_activated_environment_is_found(home, monkeypatch):
    python = environment(home)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("VIRTUAL_ENV", str(Path(python).parent.parent))
    assert default_python() == python


def test_where_no_interpreter_has_torch_the_error_says_which_were_tried(home, monkeypatch):
    python = environment(home, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.executable", python)
    monkeypatch.setenv("VIRTUAL_ENV", "/nowhere")
    monkeypatch.setenv("PATH", str(Path(python).parent))
    with pytest.raises(TargetUnusable) as caught:
        default_python()
    assert caught.value.slug == "no-torch"
    assert python in caught.value.fact
    assert "/nowhere/bin/python" in caught.value.fact
