"""Coloured source and links: text from logs stays text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from traceview.reports.code import highlight, plain
from traceview.reports.links import graph_break, relative
from traceview.words.text import clean


@settings(deadline=None)  # the first call imports a lexer
@given(st.text(), st.sampled_from(["python", "cpp", "diff", "shell"]))
def test_highlighting_keeps_every_line_and_leaves_no_tag_of_the_text(text, language):
    lines = highlight(text, language)
    shown = [line.striptags() if "<" in line else line.unescape() for line in lines]
    assert len(lines) >= len(plain(text)) - 1
    assert all("<" not in line.replace("<span", "").replace("</span", "") for line in lines)
    wanted = "".join(clean(text).split())
    assert "".join("".join(shown).split()).rstrip() == wanted or "\r" in text


def test_links_stay_in_the_run_folder():
    assert relative("raw/cold/a b.log") == "./raw/cold/a%20b.log"
    assert relative("javascript:alert(1)") == "./javascript%3Aalert%281%29"
    for outside in ("/etc/passwd", "../x", "raw/../../x", "\\\\host\\x", "//host/x", "", None):
        assert relative(outside) is None


def test_only_torch_ids_link_to_torch_pages():
    assert graph_break("GB0124").endswith("/gb/gb0124.html")
    assert graph_break("GB0124/../../evil") is None
    assert graph_break(None) is None
