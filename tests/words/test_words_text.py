from hypothesis import given
from hypothesis import strategies as st

from traceview.words.text import clean, display_width, one_line, sentences, wrap


def test_escape_sequences_go_and_other_invisible_characters_are_shown():
    assert clean("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x") == "red x"
    assert clean("gnp\u202eexe\x00") == "gnp<U+202E>exe<U+0000>"
    assert clean("\ud800").encode() == b"<U+D800>"
    assert clean("a\tb\nc") == "a\tb\nc"


def test_a_limit_says_what_it_leaves_out():
    assert one_line("x" * 1500, 1000) == "x" * 1000 + "… (500 more characters)"


def test_a_text_of_sentences_ends_with_one():
    text = "Take the first. Take the\nsecond. " + "Take a third, which is far too long. " * 2
    assert sentences(text, 50) == "Take the first. Take the second. …"
    assert sentences(text, 200) == " ".join(text.split())
    assert sentences("x" * 90, 50) == one_line("x" * 90, 50)


def test_wide_characters_take_two_columns_and_combining_ones_none():
    assert display_width("漢字") == 4
    assert display_width("e\u0301") == 1


@given(st.text(), st.integers(10, 60))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text, width):
    lines = wrap(clean(text), width, "  ", "    ")
    assert all(display_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(clean(text).split())
