from hypothesis import given
from hypothesis import strategies as st

from traceview.reports.code import highlight, plain
from traceview.reports.links import graph_break, relative
from traceview.reports.text import clean, display_width, one_line, wrap


def test_escape_sequences_go_and_other_invisible_characters_are_shown():
    assert clean("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x") == "red x"
    assert clean("gnp\u202eexe\x00") == "gnp<U+202E>exe<U+0000>"
    assert clean("\ud800").encode() == b"<U+D800>"
    assert clean("a\tb\nc") == "a\tb\nc"


def test_a_limit_says_what_it_leaves_out():
    assert one_line("x" * 1500, 1000) == "x" * 1000 + "… (500 more characters)"


def test_wide_characters_take_two_columns_and_combining_ones_none():
    assert display_width("漢字") == 4
    assert display_width("e\u0301") == 1


@given(st.text(), st.integers(10, 60))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text, width):
    lines = wrap(clean(text), width, "  ", "    ")
    assert all(display_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(clean(text).split())


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
