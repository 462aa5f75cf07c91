"""Compiled templates that are kept beside the package's own bytecode."""

import sys

import pytest
from jinja2 import DictLoader, Environment

from traceview.reports.bytecode import Beside


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Renders a template of that text with a new environment, and says how often it compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def rendered(text="{{ 1 + 1 }}"):
        compiled = []
        environment = Environment(
            loader=DictLoader({"page": text}), bytecode_cache=Beside(tmp_path), autoescape=True
        )
        compile_ = environment.compile
        environment.compile = lambda *given: compiled.append(1) or compile_(*given)
        return environment.get_template("page").render(), len(compiled)

    return rendered


def kept(folder):
    return list((folder / "__pycache__").glob("*"))


def test_a_template_is_compiled_once(render, tmp_path):
    assert render() == ("2", 1)
    assert render() == ("2", 0)
    assert len(kept(tmp_path)) == 1


def test_another_text_is_compiled_anew(render):
    render()
    assert render("{{ 2 + 3 }}") == ("5", 1)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"", lambda data: b"x" * 99]
)
def test_a_damaged_file_is_compiled_anew(render, tmp_path, damage):
    render()
    (file,) = kept(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    assert render() == ("2", 1)
    assert render() == ("2", 0)


def test_nothing_is_written_where_python_may_not(render, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert render() == ("2", 1)
    assert not (tmp_path / "__pycache__").exists()


def test_a_folder_that_can_not_be_written_is_no_failure(render, tmp_path):
    (tmp_path / "__pycache__").write_text("a file is in the way")
    assert render() == ("2", 1)
