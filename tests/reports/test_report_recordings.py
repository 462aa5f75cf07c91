"""Every recorded run of a GPU, and the telling ones of a CPU, through every report."""

import re

import pytest
import recorded
from page import Page

from traceview.reports import html, markdown, terminal
from traceview.reports.text import display_width


@pytest.fixture(scope="module", params=[*recorded.GPU, *recorded.CPU])
def diagnosis(request):
    return recorded.diagnosis(request.param)


def test_terminal_fits_a_screen_and_names_no_unknown(diagnosis):
    lines = terminal.render(diagnosis, 80, color=False).splitlines()
    assert len(lines) <= 30
    assert max(map(display_width, lines)) <= 80
    for words in ("not recorded", "not known", "None", "nan"):
        assert words not in "\n".join(lines)


def test_page_is_whole_and_its_first_screen_names_no_unknown(diagnosis):
    source = html.render(diagnosis)
    page = Page(source)
    assert page.problems == []
    assert len(source.encode()) < 1_500_000
    header = Page(re.search(r"<header.*?</header>", source, re.S).group()).text
    assert diagnosis.verdict.sentence.split(" (")[0].split("/")[0] in header
    for words in ("not recorded", "not known", "None"):
        assert words not in header


def test_no_category_or_kernel_shows_its_inner_name(diagnosis):
    text = Page(html.render(diagnosis)).text + markdown.render(diagnosis)
    # A kernel's name in full stands in its details, a table's under evidence; categories never do.
    assert not re.findall(
        r"\b(?:idle|overhead|generated)_(?!kernels\b)[a-z]\w*", _without_code(text, diagnosis)
    )


def _without_code(text, diagnosis):
    """``text`` less the code of this run, which may use any word."""
    for graph in diagnosis.graphs:
        for code in (graph.graph_text, graph.output_code):
            text = text.replace(" ".join((code or "").split()) or "\0", "")
    return text


def test_markdown_has_as_many_cells_in_every_row(diagnosis):
    cells = None
    for line in markdown.render(diagnosis).splitlines():
        if not line.startswith("|"):
            cells = None
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        cells = cells or found
        assert found == cells, line
