"""A post-mortem's report: what it says of a job, at 1, 4 and 512 ranks; hostile and odd ones."""

import re

import pytest
import sample
import sample_job
from msgspec import structs
from page import Page

from traceview.reports import html, markdown, terminal
from traceview.reports.job import pictures, words

MOST_BYTES = 3_000_000
FIRST = ("by-rank-h", "slow-h", "timeline-h")


@pytest.fixture(scope="module")
def pages():
    return {name: html.render(make()) for name, make in sample_job.ALL.items()}


@pytest.mark.parametrize("name", sample_job.ALL)
def test_the_page_is_well_formed_and_loads_nothing(pages, name):
    page = Page(pages[name])
    assert page.problems == []
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    links = [found["href"] for found in page.all("a") if found.get("href", "").startswith("#")]
    assert {link[1:] for link in links} <= set(ids)
    assert not any(tag in {"link", "img", "iframe"} or "src" in has for tag, has in page.elements)


@pytest.mark.parametrize("name", sample_job.ALL)
def test_the_page_is_small(pages, name):
    assert len(pages[name].encode()) < MOST_BYTES


def test_512_ranks_take_far_less_than_the_limit(pages):
    assert len(pages["many"].encode()) < 600_000


@pytest.mark.parametrize("name", ["one", "four", "twelve", "many"])
def test_the_first_screen_has_sentence_seconds_functions_and_timeline(pages, name):
    head = pages[name].partition("</header>")[0]
    for said in FIRST:
        assert f'id="{said}"' in head
    text = Page(head + "</header></main></div></body></html>").text
    assert "44.0 s of compilation" in text
    assert "forward at train.py:67" in text
    assert head.count("<svg") == 2


def test_few_ranks_have_lanes_and_bars_of_their_own(pages):
    page = pages["four"]
    for rank in range(4):
        assert page.count(f">rank {rank}</text>") >= 1
    assert ">rank 2 (straggler)</text>" in page


def test_512_ranks_are_drawn_as_bands_not_as_rows(pages):
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", pages["many"])
    assert len(labels) < 60
    assert "0–31" in labels
    assert "480–511" in labels
    assert "rank 256" in labels  # the straggler's own lane


def test_a_band_is_as_dark_as_many_of_its_ranks_compile():
    base = sample_job.job(32)
    half = tuple(
        structs.replace(lane, spans=((0.0, 80.0, 0),) if index % 2 else ())
        for index, lane in enumerate(base.timeline.lanes)
    )
    drawn = str(pictures.timeline(structs.replace(
        base, timeline=structs.replace(base.timeline, lanes=half), stragglers=(), waits=(),
        compile=structs.replace(base.compile, most_rank=None),
    )))  # fmt: skip
    shades = re.findall(r"shade(\d)", drawn)
    assert set(shades) == {"3"}
    assert len(shades) == 16


def test_all_ranks_are_in_the_table_of_512(pages):
    for rank in (0, 200, 511):
        assert f"<td>rank {rank}<" in pages["many"]


@pytest.mark.parametrize("name", ["one", "four", "many"])
def test_every_picture_says_in_words_what_it_shows(pages, name):
    found = re.findall(r"<svg class=\"picture\".*?<desc[^>]*>(.*?)</desc>", pages[name], re.S)
    assert len(found) == 2
    assert all("rank 0" in said for said in found[1:])


@pytest.mark.parametrize(
    "said",
    [
        "inductor_<wbr>config[cpp.simdlen]", "self.noise == 0.0", "not on every rank",
        "Different order of collectives", "After step 3, 1 function was compiled again.",
        "Unsupported call_function target", "Data-dependent branching", "triton_<wbr>mm_<wbr>17",
        "1.25\u00a0s of 2.0\u00a0s idle fall on compiles of other ranks.", "Clocks of ranks differ",
        "The file ends in the middle of an event.", "3 more functions took 400 ms together",
    ],
)  # fmt: skip
def test_every_part_of_the_story_is_told(pages, said):
    assert said in pages["four"] or said.replace("<wbr>", "") in pages["four"]


def test_a_job_of_which_nothing_is_known_says_so(pages):
    text = Page(pages["bare"]).text
    assert "No compile was recorded." in text
    assert "No record has a timestamp." in text
    assert "nan" not in text.lower().split()


def test_an_attack_in_every_text_stays_text(pages):
    page = pages["hostile"]
    assert "<script>alert" not in page
    assert "onerror=alert" not in re.sub(r"&lt;img[^&]*", "", page)
    assert page.count("<script>") == 1


@pytest.mark.parametrize("offset", range(8))
def test_odd_numbers_never_break_a_page(offset):
    found = sample_job.absurd(offset)
    page = Page(html.render(found))
    assert page.problems == []
    for tag, attributes in page.elements:
        if tag in {"rect", "line", "text"}:
            assert not re.search(r"nan|inf|1e\+", " ".join(filter(None, attributes.values())))
    terminal.render(found, 80, color=True)
    markdown.render(found)


def test_an_ordinary_run_has_nothing_of_a_job():
    page = html.render(sample.helped())
    assert "jobfirst" not in page
    assert "The story of a job" not in page


@pytest.mark.parametrize("width", [20, 40, 80, 100])
@pytest.mark.parametrize("name", sample_job.ALL)
def test_no_line_of_the_terminal_is_too_wide(name, width):
    from traceview.words.text import display_width

    for line in terminal.render(sample_job.ALL[name](), width, color=False).splitlines():
        assert display_width(line) <= width


def test_the_terminal_names_the_cause_and_what_went_wrong():
    said = terminal.render(sample_job.postmortem(512), 100, color=False)
    assert said.startswith("44.0 s of compilation")
    assert "→ cache missed, 36.0 s" in said
    assert "failed: clipped at train.py:48 on rank 1" in said
    assert "straggler: rank 256" in said
    assert len(said.splitlines()) < 40


def test_markdown_fits_a_ticket_and_names_the_causes():
    for make in sample_job.ALL.values():
        assert len(markdown.render(make()).encode()) <= markdown.MAX_BYTES
    said = markdown.render(sample_job.postmortem(512))
    assert said.startswith("## Post-mortem\n\n**44.0 s of compilation")
    assert "| `inductor_config[cpp.simdlen]` |" in said
    assert "492 more ranks are in the report." in said


def test_a_reason_that_is_not_known_is_not_written():
    base = sample_job.postmortem()
    cut = structs.replace(base.job.failures[0], outcome="unfinished", reason=None)
    cut = structs.replace(cut, fail_type=None)
    job = structs.replace(base.job, failures=(cut,), stragglers=(), divergences=(), late=None)
    assert list(words.troubles(job, base)) == [
        ("never finished", "clipped at train.py:48 on rank 1")
    ]


def test_a_file_elsewhere_is_shown_by_its_last_folder():
    found = sample_job.postmortem()
    assert words.line("/srv/jobs/a/model.py", 7, found) == "…/a/model.py:7"
    assert words.line(sample_job.SCRIPT, 7, found) == "train.py:7"


def test_ranks_come_by_number_and_processes_last():
    names = ["rank 10", "process 4711", "rank 9"]
    assert sorted(names, key=words.order) == ["rank 9", "rank 10", "process 4711"]


def test_columns_stand_for_neighbours_where_ranks_are_many():
    few, many = sample_job.job(6), sample_job.job(512)
    assert pictures.few(few)
    assert not pictures.few(many)
    assert len(re.findall(r"<rect", str(pictures.by_rank(many)))) == 128
