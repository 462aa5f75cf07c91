"""Compiled templates, kept in the user's cache folder."""

import pytest
from jinja2 import Environment

from traceview.reports import html


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Renders a page as a new process would, and says how many templates were compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compile_, compiled = Environment.compile, []
    monkeypatch.setattr(
        Environment, "compile", lambda *given: compiled.append(1) or compile_(*given)
    )

    def rendered():
        compiled.clear()
        made = html.environment("traceview.reports.compare", 100, {"words": None, "shared": None})
        made.get_template("compare.html.j2")
        return len(compiled)

    return rendered


def kept(folder):
    return list((folder / "traceview" / "templates").glob("*.cache"))


def test_a_template_is_compiled_once(render, tmp_path):
    assert render() == 1
    assert render() == 0
    assert len(kept(tmp_path)) == 1


@pytest.mark.parametrize("keep", [0, 1, 30, 60, -9])
def test_a_damaged_file_is_compiled_again(render, tmp_path, keep):
    render()
    (file,) = kept(tmp_path)
    file.write_bytes(file.read_bytes()[:keep])
    assert render() == 1
    assert render() == 0


def test_a_folder_that_can_not_be_written_is_no_failure(render, tmp_path):
    (tmp_path / "traceview").write_text("a file is in the way")
    assert render() == 1
    assert render() == 1


def test_a_cache_folder_is_an_absolute_path(render, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert render() == 1
    assert not (tmp_path / "somewhere").exists()
