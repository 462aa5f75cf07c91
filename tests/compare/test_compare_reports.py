"""A comparison as text, Markdown, JSON and HTML: complete, narrow enough, nothing gets through."""

import json
import re
from html.parser import HTMLParser

import jsonschema
import pytest
from sides import NASTY, moved, poisoned, side

from traceview import limits
from traceview.compare import compare
from traceview.compare.model import schema, to_json
from traceview.contracts import text_of
from traceview.reports.compare import html, markdown, terminal
from traceview.words.text import display_width

ABOVE = "import os\nimport sys\n"
VOID = {"meta", "wbr", "br"}


def comparisons():
    bad, good = side("bad-gb_item"), side("good-gb_item")
    gpu = side("gpu-transformer_training")
    return {
        "fixed": compare(bad, good),
        "moved": compare(bad, moved(bad, ABOVE, "other.py")),
        "limit": compare(side("bad-rc_limit_hit"), side("good-rc_limit_hit")),
        "torch": compare(side("torch2_6-bad-gb_item"), bad),
        "devices": compare(bad, gpu),
        "itself": compare(gpu, gpu),
        "hostile": compare(poisoned(bad), poisoned(gpu)),
    }


@pytest.fixture(scope="module", params=["fixed", "moved", "limit", "torch", "devices", "itself",
                                         "hostile"])  # fmt: skip
def comparison(request):
    return comparisons()[request.param]


class Page(HTMLParser):
    """Elements, handlers, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.problems, self.pieces = [], [], [], []
        self.feed(text)
        self.close()
        self.problems += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.pieces.append(data)

    @property
    def text(self):
        return " ".join("".join(self.pieces).split())


@pytest.mark.parametrize("width", [40, 80, 100])
def test_terminal_lines_fit(comparison, width):
    lines = terminal(comparison, width, color=False).splitlines()
    assert max(map(display_width, lines)) <= width
    assert "\x1b" not in "\n".join(lines)
    assert "\u202e" not in "\n".join(lines)


def test_terminal_colours_only_where_asked(comparison):
    text = terminal(comparison, 80, color=True)
    assert "\x1b[1m" in text
    assert "\x1b[31m<script>" not in text


def test_markdown_rows_have_as_many_cells_as_their_head(comparison):
    text = markdown(comparison)
    assert len(text.encode()) < 65_000
    plain = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text.replace("\\`", ""))
    assert "<script" not in plain
    assert "<img" not in plain
    cells = None
    for line in text.splitlines():
        if not line.startswith("|"):
            cells = None
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        cells = cells or found
        assert found == cells, line


def test_json_fits_its_schema(comparison):
    data = json.loads(text_of(to_json(comparison)))
    jsonschema.Draft202012Validator(schema()).validate(data)
    assert data["format"] == 1


def test_the_page_is_whole_and_loads_nothing(comparison):
    source = html(comparison)
    page = Page(source)
    assert page.problems == []
    assert len(source.encode()) < limits.now.page
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "link", "iframe", "form"}
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert attributes.get("href", "#").startswith("#")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for t, a in page.elements if t == "a"} <= set(ids)
    policy = next(a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    for character in "\x1b\u202e\x00":
        assert character not in source


def test_every_form_says_what_came_and_went():
    fixed = comparisons()["fixed"]
    for text in (
        terminal(fixed, 100, color=False), markdown(fixed),
        Page(html(fixed)).text,
    ):  # fmt: skip
        assert "went" in text
        assert "TV101" in text
        assert "gb\\_item.py:16" in text or "gb_item.py:16" in text
        assert "within noise" in text


def test_moved_is_said_with_both_places():
    text = terminal(comparisons()["moved"], 100, color=False)
    assert "→ moved: warning TV101" in text
    assert "other.py:18 in forward (was gb_item.py:16 in forward)" in text


def test_what_is_hostile_is_text():
    page = Page(html(comparisons()["hostile"]))
    assert "<script>alert(1)</script>" in page.text
    assert "{{7*7}}" in page.text
    assert NASTY not in page.text


def test_no_inner_name_is_shown():
    for name in ("fixed", "limit", "devices"):
        text = Page(html(comparisons()[name])).text
        for word in ("None", "nan", "within_noise", "not_recorded", "aot_s"):
            assert not re.search(rf"\b{word}\b", text), (name, word)
