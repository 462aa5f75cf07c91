"""Pages as axe-core judges them: no hurdle to who reads by keyboard or screen reader."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from recorded_jobs import diagnosis as diagnosis_of_job
from recordings import diagnosis_of
from screen import look, open_everything, show

from traceview.reports import html

pytestmark = pytest.mark.browser
PAGES = {
    "helped": lambda: diagnosis_of("gpu-transformer_training"),
    "hurt": lambda: diagnosis_of("bad-rc_limit_hit"),
    "not compiled": lambda: diagnosis_of("bad-cap_no_compile_call"),
    "post-mortem": lambda: diagnosis_of_job("restarted"),
}
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
    diagnosis = PAGES[name]()
    assert name in ("post-mortem", diagnosis.verdict.outcome.replace("_", " "))
    (tmp_path / "page.html").write_text(html.render(diagnosis), encoding="utf-8")
    show(browser, (tmp_path / "page.html").as_uri())
    for theme in ("light", "dark"):
        look(browser, theme=theme)
        assert violations(browser, axe) == []
    # Contrast of all 10,000 elements takes axe a minute; test_contrast looks at it in a second.
    open_everything(browser)
    assert violations(browser, axe, contrast=False) == []


def test_axe_finds_what_is_planted(browser, axe, tmp_path):
    page = html.render(diagnosis_of("bad-cap_no_compile_call"))
    planted = '<main><img src="data:,"><a href="#x"></a><p style="color:#eee">faint</p>'
    (tmp_path / "page.html").write_text(page.replace("<main>", planted), encoding="utf-8")
    show(browser, (tmp_path / "page.html").as_uri())
    found = {each[1] for each in violations(browser, axe)}
    assert {"image-alt", "link-name", "color-contrast"} <= found
