"""Every recorded run of a GPU, and the telling ones of a CPU, through every report."""

import re

import pytest
from page import Page
from recordings import NAMES, diagnosis_of

from traceview.reports import html, markdown, terminal
from traceview.words.text import display_width

GPU = sorted(name for name in NAMES if name.startswith("gpu-"))
CPU = ["bad-gb_fragmented", "bad-rc_limit_hit", "bad-cap_nothing_compiled_forced", "good-gb_item"]

#: No wonder where the speedup is not known either.
NOISY = "not known: too noisy"


@pytest.fixture(scope="module", params=[*GPU, *CPU])
def diagnosis(request):
    return diagnosis_of(request.param)


@pytest.fixture(scope="module")
def source(diagnosis):
    return html.render(diagnosis)


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


@pytest.fixture(scope="module")
def ticket(diagnosis):
    return markdown.render(diagnosis)


def test_terminal_fits_a_screen_and_names_no_unknown(diagnosis):
    lines = terminal.render(diagnosis, 80, color=False).splitlines()
    assert len(lines) <= 30
    assert max(map(display_width, lines)) <= 80
    text = "\n".join(lines).replace(NOISY, "")
    for words in ("not recorded", "not known", "None", "nan"):
        assert words not in text


def test_page_is_whole_and_its_first_screen_names_no_unknown(diagnosis, source, page):
    assert page.problems == []
    assert len(source.encode()) < 1_500_000
    header = Page(re.search(r"<header.*?</header>", source, re.S).group()).text
    assert diagnosis.verdict.headline.split("/")[0].replace('"', "”") in header.replace('"', "”")
    for words in ("not recorded", "not known", "None"):
        assert words not in header.replace(NOISY, "")


def test_no_category_or_kernel_shows_its_inner_name(diagnosis, page, ticket):
    text = page.text + ticket
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


def test_markdown_has_as_many_cells_in_every_row(ticket):
    cells = None
    for line in ticket.splitlines():
        if not line.startswith("|"):
            cells = None
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        cells = cells or found
        assert found == cells, line
