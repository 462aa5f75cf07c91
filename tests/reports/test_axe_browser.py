"""Pages as axe-core judges them: no hurdle to who reads by keyboard or screen reader."""

from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest
import sample_job
from recorded_jobs import diagnosis as diagnosis_of_job
from recordings import diagnosis_of
from screen import fits, look, open_everything, show
from served_events import assessed
from sides import side
from trial_events import recorded, swept

from traceview.compare import compare
from traceview.reports import compare as compared
from traceview.reports import html, rollout, trials

pytestmark = pytest.mark.browser
#: A page of each kind: the text of it, from a folder to write into.
PAGES = {
    "helped": lambda _: html.render(diagnosis_of("gpu-missed_epilogue_good")),
    "hurt": lambda _: html.render(diagnosis_of("bad-rc_limit_hit")),
    "not compiled": lambda _: html.render(diagnosis_of("bad-cap_no_compile_call")),
    "post-mortem": lambda _: html.render(diagnosis_of_job("restarted")),
    "ranks": lambda _: html.render(sample_job.ALL["many"]()),
    "compare": lambda _: compared.html(compare(side("bad-rc_limit_hit"), side("good-gb_item"))),
    "try": lambda folder: trials.html(recorded(folder)),
    "sweep": lambda folder: trials.html(swept(recorded(folder))),
    "rollout": lambda folder: rollout.html(assessed(folder)),
}
#: Contrast of all their elements takes axe a minute; test_contrast looks at it in a second.
LONG = ("helped", "hurt", "post-mortem", "ranks")
RUN = """
const done = arguments[arguments.length - 1];
const rules = {"color-contrast": {enabled: arguments[0]}};
axe.run(document, {resultTypes: ["violations"], rules}).then(
  (found) => done([found.testEngine.version, found.passes.length, found.violations.map((each) =>
    [each.impact, each.id, each.help, each.nodes.slice(0, 4).map((node) => node.html)])]),
  (error) => done(["", 0, [["critical", "axe-core failed", String(error), []]]]));
"""


@pytest.fixture(scope="module")
def axe():
    """axe-core's text: a package for another driver has it, of which nothing else is used."""
    package = find_spec("axe_playwright_python")
    if package is None:
        pytest.skip("axe-playwright-python, which has axe.min.js, is not installed")
    return (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(browser, axe, contrast=True):
    browser.set_script_timeout(120)
    browser.execute_script(axe)
    version, passed, found = browser.execute_async_script(RUN, contrast)
    assert version
    assert passed > 10
    return [each for each in found if each[0] != "minor"]


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_hurdle(browser, axe, tmp_path, name):
    (tmp_path / "page.html").write_text(PAGES[name](tmp_path), encoding="utf-8")
    show(browser, (tmp_path / "page.html").as_uri())
    if name in LONG:
        screens, opened = ((1280, "light"), (380, "dark")), ((380, "light"),)
    else:
        screens = opened = tuple(product((1280, 380), ("light", "dark")))
    for width, theme in screens:
        look(browser, width, theme)
        assert fits(browser, width)
        assert violations(browser, axe) == []
    open_everything(browser)
    for width, theme in opened:
        look(browser, width, theme)
        assert violations(browser, axe, contrast=name not in LONG) == []


def test_axe_finds_what_is_planted(browser, axe, tmp_path):
    page = html.render(diagnosis_of("bad-cap_no_compile_call"))
    planted = '<main><img src="data:,"><a href="#x"></a><p style="color:#eee">faint</p>'
    (tmp_path / "page.html").write_text(page.replace("<main>", planted), encoding="utf-8")
    show(browser, (tmp_path / "page.html").as_uri())
    found = {each[1] for each in violations(browser, axe)}
    assert {"image-alt", "link-name", "color-contrast"} <= found
