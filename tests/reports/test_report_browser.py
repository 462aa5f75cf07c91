"""The page in a real browser: no error, readable without scripts, no sideways scroll, contrast."""

import pytest
import sample
from msgspec.structs import replace
from recordings import diagnosis_of, unpack
from screen import COLLISIONS, WIDE, fits, look, open_everything, rgb, show, weak

from traceview.collectors.tlparse_report import write_reports
from traceview.diagnosis.environment import links
from traceview.reports import html
from traceview.run import Run

pytestmark = pytest.mark.browser
REAL = ("gpu-transformer_training", "gpu-cudagraph_overwritten", "bad-rc_limit_hit")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, make in sample.ALL.items():
        (folder / f"{name}.html").write_text(html.render(make()), encoding="utf-8")
    for name in REAL:
        page = html.render(diagnosis_of(name))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in (*sample.ALL, *REAL)}


@pytest.mark.parametrize("name", sample.ALL)
def test_no_console_message_and_the_script_has_run(browser, addresses, name):
    show(browser, addresses[name])
    assert browser.get_log("browser") == []
    if name == "helped":
        assert browser.find_elements("css selector", "button.copy")


@pytest.mark.parametrize("name", sample.ALL)
def test_verdict_is_on_the_first_screen_without_scripts(browser, addresses, name):
    show(browser, addresses[name], script=False)
    headings = browser.find_elements("tag name", "h1")
    assert len(headings) == 1
    assert headings[0].is_displayed()
    assert headings[0].text.strip()
    if name != "hostile":
        assert headings[0].location["y"] + headings[0].size["height"] < 900
    assert not browser.find_elements("css selector", "button.copy")


@pytest.mark.parametrize("name", ["helped", "failed", "hostile", "absurd", *REAL])
def test_no_width_scrolls_sideways_and_words_of_a_picture_stay_apart(browser, addresses, name):
    show(browser, addresses[name])
    open_everything(browser)
    for width in (380, 768, 1280):
        look(browser, width)
        assert fits(browser, width) or name == "absurd"
        assert browser.execute_script(COLLISIONS) == []


def test_every_picture_has_a_table_or_a_sentence_below_it(browser, addresses):
    show(browser, addresses["helped"], script=False)
    without = browser.execute_script(
        "return [...document.querySelectorAll('figure')].filter(f => f.querySelector('svg') && "
        "!f.querySelector('figcaption')?.textContent.trim()).length"
    )
    assert without == 0


def test_sizes_in_mixed_units_sort_by_their_bytes(browser, addresses):
    show(browser, addresses["helped"])
    open_everything(browser)
    head = "#limits table.sortable th:nth-child(4)"
    browser.find_element("css selector", head).click()
    cells = browser.find_elements("css selector", "#limits table.sortable td:nth-child(4)")
    shown = [cell.text.splitlines()[0] for cell in cells]
    assert shown == ["1.25 GiB", "36.0 MiB", "36.0 MiB", "32.0 MiB", "not known"]


@pytest.mark.parametrize("name", ["helped", "hurt", "failed", "not_compiled", *REAL])
def test_contrast(browser, addresses, name):
    show(browser, addresses[name])
    open_everything(browser)
    for theme in ("light", "dark"):
        look(browser, theme=theme)
        assert weak(browser) == []


def test_the_themes_differ_and_print_is_light(browser, addresses):
    back = "return getComputedStyle(document.body).backgroundColor"
    show(browser, addresses["helped"])
    found = []
    for theme, media in (("light", ""), ("dark", ""), ("dark", "print")):
        look(browser, theme=theme, media=media)
        found.append(sum(rgb(browser.execute_script(back))))
    assert found[1] < 150 < found[0]
    assert found[2] == 3 * 255


def test_a_column_sorts_by_its_numbers(browser, addresses):
    show(browser, addresses["helped"])
    open_everything(browser)
    column = "#time table.accounts tbody tr td:nth-child(2)"
    browser.find_element("css selector", "#time table.accounts th:nth-child(2)").click()
    shown = [cell.text for cell in browser.find_elements("css selector", column)]
    numbers = [float(text) for text in shown if text != "–"]
    assert numbers == sorted(numbers, reverse=True)
    assert shown[: len(numbers)] == [text for text in shown if text != "–"]


@pytest.mark.parametrize("name", ["helped", *REAL])
def test_a_sheet_of_paper_is_wide_enough(browser, addresses, name):
    show(browser, addresses[name], width=680, media="print")  # A4 less its margins
    assert fits(browser, 680)


def test_the_keyboard_sorts_and_opens(browser, addresses):
    show(browser, addresses["helped"])
    open_everything(browser)
    head = browser.find_element("css selector", "#time table.accounts th:nth-child(2)")
    head.send_keys(" ")
    assert head.get_attribute("aria-sort") == "descending"
    head.send_keys("\n")
    assert head.get_attribute("aria-sort") == "ascending"
    box = browser.find_element("css selector", "#pairs details")
    browser.execute_script("arguments[0].open = false", box)
    box.find_element("tag name", "summary").send_keys("\n")
    assert box.get_attribute("open")


@pytest.mark.parametrize("name", REAL)
def test_a_page_is_short_until_unfolded_and_no_table_scrolls_at_a_desk(browser, addresses, name):
    show(browser, addresses[name])
    height = "return document.documentElement.scrollHeight"
    assert browser.execute_script(height) < 6000
    open_everything(browser)
    assert browser.execute_script(height) > 6000
    assert browser.execute_script(WIDE) == []
    findings = "return document.getElementById('findings').getBoundingClientRect().top + scrollY"
    assert browser.execute_script(findings) < 900


@pytest.mark.parametrize("script", [True, False])
def test_a_link_opens_what_it_leads_to(browser, addresses, script):
    show(browser, addresses["helped"], script=script)
    browser.get(addresses["helped"] + "#pairs")
    section = browser.find_element("css selector", "#pairs")
    assert section.is_displayed()
    assert abs(section.rect["y"] - browser.execute_script("return scrollY")) < 900


def test_a_link_to_nothing_leaves_the_page_whole(browser, addresses):
    show(browser, addresses["helped"])
    browser.get("about:blank")
    browser.get(addresses["helped"] + "#%")
    assert browser.get_log("browser") == []
    assert browser.find_element("id", "find").is_displayed()


def test_print_holds_what_is_folded(browser, addresses):
    show(browser, addresses["helped"])
    closed = "return document.querySelectorAll('.fold:not([open])').length"
    before = browser.execute_script(closed)
    assert before > 5
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(closed) == 0
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(closed) == before


def test_the_filter_keeps_what_matches_and_gives_the_rest_back(browser, addresses):
    show(browser, addresses["helped"])
    shown = (
        "return [...document.querySelectorAll('main .finding, main .fold tbody > tr')]"
        ".filter(e => e.checkVisibility({contentVisibilityAuto: true})).map(e => e.textContent)"
    )
    before = browser.execute_script(shown)
    box = browser.find_element("id", "find")
    output = browser.find_element("css selector", "output[for=find]")
    set_text = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, 5)
    browser.execute_script(set_text, box, "REDUCE_kernel eager")
    wait.until(lambda _: "match" in output.text)
    found = browser.execute_script(shown)
    assert found
    assert all("reduce_kernel" in text and "eager" in text for text in found)
    browser.execute_script(set_text, box, "")
    wait.until(lambda _: output.text == "")
    assert browser.execute_script(shown) == before


def test_without_scripts_there_is_no_filter(browser, addresses):
    show(browser, addresses["helped"], script=False)
    assert not browser.find_element("id", "find").is_displayed()


def sieve(browser, words):
    """What the filter keeps of findings and rows: the names of their rules, and their places."""
    output = browser.find_element("css selector", "output[for=find]")
    browser.execute_script(
        "arguments[0].textContent = ''; find.value = arguments[1];"
        "find.dispatchEvent(new Event('input'))",
        output,
        words,
    )
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, 5)
    wait.until(lambda _: "match" in output.text)
    return browser.execute_script("""
        const shown = (unit) => unit.checkVisibility({contentVisibilityAuto: true});
        const units = [...document.querySelectorAll("main .finding, main .fold tbody > tr")];
        return units.filter(shown).map((unit) => [
          [unit, ...unit.querySelectorAll("[data-rule]")]
            .flatMap((e) => (e.dataset.rule ?? "").split(" ")),
          [...unit.querySelectorAll(".where, .mono")].map((e) => e.textContent).join(" "),
        ]);
    """)


def test_the_filter_keeps_findings_of_a_rule_and_what_is_at_a_file(browser, addresses):
    show(browser, addresses["bad-rc_limit_hit"])
    offered = browser.execute_script("return [...find.list.options].map(option => option.value)")
    rules = [each for each in offered if each.startswith("rule:")]
    files = [each for each in offered if each.startswith("file:")]
    assert len(rules) > 1
    assert files
    for rule in rules[:2]:
        kept = sieve(browser, rule)
        assert kept
        assert all(rule.removeprefix("rule:") in names for names, _ in kept)
    kept = sieve(browser, files[0])
    assert kept
    assert all(files[0].removeprefix("file:") in places for _, places in kept)
    assert sieve(browser, f"{rules[0]} {files[0]} no-such-word") == []
    assert sieve(browser, "rule:TV999") == []


def test_every_remedy_has_a_button_that_copies_it(browser, addresses):
    show(browser, addresses["bad-rc_limit_hit"])
    open_everything(browser)
    remedies = browser.find_elements("css selector", ".do:has(h4)")
    assert len(remedies) > 1
    copy = (
        "const done = arguments[1]; navigator.clipboard.writeText = async (text) => done(text);"
        "arguments[0].click()"
    )
    for remedy in remedies:
        (button,) = remedy.find_elements("css selector", "button.copy")
        said = remedy.find_element("css selector", "pre, .said")
        code = remedy.find_elements("css selector", "pre")
        text = browser.execute_async_script(copy, button)
        assert text.strip()
        assert text == (code[0] if code else said).get_property("innerText")


@pytest.mark.parametrize("name", [name for name in REAL if name != "gpu-cudagraph_overwritten"])
def test_the_ten_largest_tables_are_folded(browser, addresses, name):
    show(browser, addresses[name], script=False)
    open_ones = (
        "return [...document.querySelectorAll('main table')].map(table => [table.rows.length, "
        "table.checkVisibility({contentVisibilityAuto: true}), table.closest('section')?.id])"
        ".sort((one, other) => other[0] - one[0])"
    )
    largest = browser.execute_script(open_ones)[:10]
    assert len(largest) == 10
    assert [each for each in largest if each[1]] == []


def test_a_compile_s_id_leads_to_what_tlparse_has_of_it(browser, tmp_path):
    run = Run.open(unpack("bad-gb_item", tmp_path))
    problems = list(write_reports(run, run.manifest.passes[0]))
    if any("tlparse was not found" in each for each in problems):
        pytest.skip(problems[0])
    assert problems == []
    page = run.folder / "report.html"
    found = diagnosis_of("bad-gb_item")
    page.write_text(html.render(replace(found, links=links(run))), encoding="utf-8")
    show(browser, page.as_uri())
    open_everything(browser)
    compiles = browser.find_elements("css selector", "#compile td:first-child a")
    ids = [link.text for link in compiles]
    assert ids == [row.compile_id for row in found.compiles]
    for address, name in [(link.get_property("href"), link.text) for link in compiles]:
        browser.get(address)
        assert browser.execute_script("return document.querySelector(':target').id") == f"[{name}]"
    browser.get_log("browser")  # tlparse's page has errors of its own
