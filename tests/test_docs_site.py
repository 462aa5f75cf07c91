"""The site of docs/: each page is in its contents, links lead somewhere, the gallery is whole."""

import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted((*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"))
LINK = re.compile(r"(?<!\\)\[[^\]]*\]\((?P<to>[^)\s]+)\)")
CODE_LINES = re.compile(r"^(?: {4}|\t).*$", re.M)


@cache
def text_of(page):
    return page.read_text(encoding="utf-8")


@cache
def prose_of(page):
    text = re.sub(r"^(`{3,}).*?^\1`*$", "", text_of(page), flags=re.M | re.S)
    return CODE_LINES.sub("", text)


@cache
def anchors_of(page):
    """Those that GitHub and MyST give its headings."""
    heads = re.findall(r"^#{1,4} (.+)$", prose_of(page), flags=re.M)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h)) for h in heads)
    return {head.strip().lower().replace(" ", "-") for head in plain}


def contents():
    """The entries of the site's tables of contents."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", text_of(DOCS / "index.md"), re.M | re.S)
    lines = [line.strip() for tree in trees for line in tree.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_the_contents_once():
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert sorted(contents()) == sorted(pages)


def test_pages_of_rules_are_below_their_table():
    listed = set(re.findall(r"\(rules/([\w\-]+)\.md\)", text_of(DOCS / "rules.md")))
    assert listed == {page.stem for page in (DOCS / "rules").glob("*.md")}


def test_links_lead_to_a_page_and_a_heading():
    lost = []
    for page in PAGES:
        for found in LINK.finditer(prose_of(page)):
            place, _, anchor = found["to"].partition("#")
            if place.startswith(("http://", "https://", "mailto:")):
                continue
            target = (page.parent / place).resolve() if place else page
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                lost.append(f"{page.relative_to(ROOT)}: {found['to']}")
    assert lost == []


def test_the_gallery_links_to_what_is_made():
    sys.path.insert(0, str(DOCS))
    try:
        import make_gallery
    finally:
        sys.path.remove(str(DOCS))
    made = {*make_gallery.RUNS, *make_gallery.JOBS}
    linked = re.findall(r'href="gallery/([\w\-]+)\.html"', text_of(DOCS / "gallery.md"))
    assert sorted(linked) == sorted(made)
    for folder, names in (("runs", make_gallery.RUNS), ("jobs", make_gallery.JOBS)):
        for name in names.values():
            assert (ROOT / "fixtures" / folder / f"{name}.tar.xz").is_file()


@pytest.mark.live
@pytest.mark.skipif(
    not all(map(find_spec, ("sphinx", "furo", "myst_parser"))), reason="make docs installs them"
)
def test_the_site_is_built_without_a_warning(tmp_path):
    (tmp_path / "gallery").mkdir()
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E"]
    command += ["-d", str(tmp_path / "trees"), "-D", f"html_extra_path={tmp_path / 'gallery'}"]
    command += [str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "site" / "rules" / "gb-item.html").is_file()
