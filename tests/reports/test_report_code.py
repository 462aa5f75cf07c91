"""Coloured source and links: text from logs stays text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from traceview.reports.view import highlight, plain
from traceview.reports.words import graph_break_page, link
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
    assert link("raw/cold/a b.log") == "./raw/cold/a%20b.log"
    assert link("javascript:alert(1)") == "./javascript%3Aalert%281%29"
    for outside in ("/etc/passwd", "../x", "raw/../../x", "\\\\host\\x", "//host/x", "", None):
        assert link(outside) is None


def test_only_torch_ids_link_to_torch_pages():
    assert graph_break_page("GB0124").endswith("/gb/gb0124.html")
    assert graph_break_page("GB0124/../../evil") is None
    assert graph_break_page(None) is None
