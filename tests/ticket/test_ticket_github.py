"""A ticket as GitHub renders it: whole tables, no accidental link, nothing of a log as HTML."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from recorded_jobs import INDEX as JOBS
from recorded_jobs import diagnosis as diagnosis_of_job
from recordings import NAMES, diagnosis_of, run_of, tables_of

from traceview.ticket.bundle import write_ticket
from traceview.ticket.form import TRACKERS, Facts, render

cmarkgfm = pytest.importorskip("cmarkgfm")
UNSAFE = pytest.importorskip("cmarkgfm.cmark").Options.CMARK_OPT_UNSAFE

VOID = ("br", "hr", "img", "input")
EXTENSIONS = ["table", "autolink", "strikethrough", "tagfilter", "tasklist"]
SAMPLE = sorted(NAMES)[::9]
FORMS = sorted(TRACKERS)
#: What we write as HTML ourselves; all else that is a tag was made of Markdown.
OURS = {"details", "summary", "code"}
LINKS = re.compile(
    r"https://(?:github\.com/[\w-]+/\w+/issues\?q=[\w%+.-]*"
    r"|(?:meta-pytorch|pytorch)\.(?:github\.io|org)/[\w./-]+|docs\.vllm\.ai/en/latest/)"
)
#: What GitHub links where it stands in text: a person, an issue or pull request, an advisory.
REFERENCE = re.compile(
    r"(?<![\w`/.@-])@[a-z\d](?:[a-z\d-]*[a-z\d])?|(?<![\w&/])#\d+|\bGH-\d+"
    r"|\b[\w.-]+/[\w.-]+#\d+|\b[\w.-]+/[\w.-]+@[\da-f]{7}|\bCVE-\d{4}-\d{4}|\bGHSA-[\w-]{14}",
    re.IGNORECASE,
)


class Rendered(HTMLParser):
    """HTML of cmark's: its tags, links, comments, tables (cells per row), and text outside code."""

    def __init__(self, markdown, options=UNSAFE):
        super().__init__(convert_charrefs=True)
        self.tags, self.links, self.comments, self.odd = Counter(), [], [], []
        self.tables, self.texts, self.open = [], [], []
        self.feed(cmarkgfm.markdown_to_html_with_extensions(markdown, options, EXTENSIONS))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.links += [value for name, value in attrs if name == "href"]
        self.odd += [(tag, *one) for one in attrs if one[0].startswith("on") or one[0] == "style"]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append(0)
        elif tag in ("td", "th"):
            self.tables[-1][-1] += 1
        if tag not in VOID:
            self.open.append(tag)
        self.texts.append(" " if tag in ("td", "th", "p", "li", "br") else "")

    def handle_endtag(self, tag):
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.odd.append(("not nested", tag))

    def handle_data(self, data):
        self.texts.append("\u2060" if {"code", "pre", "a"} & set(self.open) else data)

    def handle_comment(self, data):
        self.comments.append(data.strip())


def written_tables(markdown):
    """Of each table of a page, outside code blocks: the cells of each of its rows."""
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", markdown, flags=re.M | re.S)
    tables, before = [], ""
    for line in outside.split("\n"):
        if line.startswith("|"):
            if not before.startswith("|"):
                tables.append([])
            tables[-1].append(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) - 1)
        before = line
    for rows in tables:
        del rows[1:2]  # the line below the heads
    return tables


def assert_fit_for_github(markdown):
    page, bare = Rendered(markdown), Rendered(markdown, 0)
    assert page.tables == written_tables(markdown)
    assert page.tables
    assert all(len(set(rows)) == 1 for rows in page.tables)
    assert (page.odd, page.open) == ([], [])
    assert set(page.comments) <= {"traceview ticket"}
    assert page.tags["img"] == 0
    assert all(LINKS.fullmatch(link) for link in page.links), page.links
    assert set(page.tags - bare.tags) <= OURS
    assert page.tags["code"] - bare.tags["code"] == markdown.count("<summary>The output of <code>")
    assert page.tags["details"] == page.tags["summary"]
    assert REFERENCE.findall("".join(page.texts)) == []


def ticket(name, folder, form):
    """The page that ``traceview ticket`` writes of a recorded run."""
    written = write_ticket(
        run_of(name), tables_of(name), diagnosis_of(name), folder, level="standard", form=form,
        versions=None, reproduce_s=0, page_of=lambda *_: "",
    )  # fmt: skip
    return written.page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_ticket_renders_as_it_is_meant(tmp_path, name):
    assert_fit_for_github(ticket(name, tmp_path, FORMS[SAMPLE.index(name) % len(FORMS)]))


@pytest.mark.live
@pytest.mark.parametrize("name", sorted(NAMES - set(SAMPLE)))
def test_a_ticket_of_every_other_recording_renders_as_it_is_meant(tmp_path, name):
    assert_fit_for_github(ticket(name, tmp_path, "pytorch"))


@pytest.mark.parametrize("name", JOBS)
def test_a_post_mortem_s_ticket_renders_as_it_is_meant(name):
    assert_fit_for_github(
        render(Facts(diagnosis_of_job(name), None, "pytorch", "standard", ["train.py"], []))
    )


@pytest.mark.parametrize(
    "broken",
    [
        "| a | b |\n| --- | --- |\n| 1 |\n",
        "| a | b |\n| --- | --- |\n| 1 | 2 | 3 |\n",
        "| a |\n| --- |\n| 1 |\n\ntext\n| b | c |\n",
        "| a |\n| --- |\n| @octocat |\n",
        "| a |\n| --- |\n| see #12 |\n",
        "| a |\n| --- |\n| a/b#1 |\n",
        "| a |\n| --- |\n| GH-1 |\n",
        "| a |\n| --- |\n| <b>x</b> |\n",
        "| a |\n| --- |\n| www.example.org |\n",
        "| a |\n| --- |\n| ![x](https://example.org/x.png) |\n",
        "| a |\n| --- |\n| 1 |\n\n<details><summary>x</summary>\n",
    ],
)
def test_what_is_broken_is_seen(broken):
    assert_fit_for_github("| a |\n| --- |\n| `@x #1 <b>` |\n")
    with pytest.raises(AssertionError):
        assert_fit_for_github(broken)
