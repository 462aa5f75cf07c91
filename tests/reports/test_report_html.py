"""The page as data: whole, self-contained, escaped, complete."""

import base64
import hashlib
import re
import time
from functools import cache

import pytest
import sample
import sample_explained
import sample_odd
from msgspec import structs
from page import Page

from traceview.diagnosis.model import AccountRow, Graph, NotChecked
from traceview.reports import html, words
from traceview.rules.finding import Cost

ALLOWED_LINK = re.compile(r"#[\w-]+|\./[^:]*|https://meta-pytorch\.github\.io/[\w/.-]+")
LOADING = {"src", "srcset", "data", "poster", "background", "action", "formaction", "xlink:href"}


@cache
def rendered(name):
    return html.render(sample.ALL[name]())


@pytest.fixture(scope="module", params=sample.ALL)
def source(request):
    return rendered(request.param)


@pytest.fixture(scope="module")
def hostile():
    """Attacks in every text, short enough that nothing is cut away."""
    return html.render(sample.hostile(0))


@pytest.mark.parametrize(
    ("interval", "said"),
    [((0.99, 1.01), "none: no measurable difference"), ((0.7, 1.4), "not known: too noisy")],
)
def test_no_break_even_says_why(interval, said):
    neutral = structs.replace(
        sample.helped().verdict, outcome="neutral", speedup=1.0, speedup_interval=interval
    )
    run = structs.replace(sample.helped(), verdict=neutral, break_even_steps=None)
    assert dict(row[:2] for row in words.facts(run))["Break-even"] == said
    assert said in html.render(run)


def test_an_empty_log_is_not_called_understood():
    run = sample.helped()
    silent = structs.replace(run, reading=structs.replace(run.reading, records=0))
    assert "The compiler logged nothing" in html.render(silent)
    assert "all understood" not in html.render(silent)


def test_a_figure_that_there_is_not_is_not_called_timed():
    found = sample.finding(cost=Cost(about="results, not time"), confidence="measured")
    page = html.render(structs.replace(sample.helped(), findings=(found,)))
    assert "results, not time" in page
    assert "the figure was timed" not in page


def test_page_is_well_formed_and_small(source):
    assert Page(source).problems == []
    assert len(source.encode()) < 2_000_000


def test_a_page_beyond_its_limit_has_less_detail(limit):
    whole = html.render(sample.hostile(3000))
    limit(page=len(whole.encode()) - 1)
    less = html.render(sample.hostile(3000))
    limit(page=1)
    least = html.render(sample.hostile(3000))
    assert len(whole) > len(less) > len(least)


def test_page_loads_nothing(source):
    page = Page(source)
    assert not page.all("link")
    for tag, attributes in page.elements:
        assert not LOADING & set(attributes), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        if "href" in attributes:
            assert ALLOWED_LINK.fullmatch(attributes["href"]), attributes
    style = source[source.index("<style>") : source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_policy_names_the_one_script_by_its_hash(source):
    page = Page(source)
    assert len(page.all("script")) == 1
    script = source[source.index("<script>") + 8 : source.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_ids_are_unique_and_every_link_within_the_page_leads_somewhere(source):
    page = Page(source)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = [a["href"][1:] for a in page.all("a") if a.get("href", "").startswith("#")]
    assert set(inner) <= set(ids)


def test_hostile_text_stays_text(hostile):
    page = Page(hostile)
    assert page.problems == []
    assert not page.all("img")
    assert len(page.all("script")) == 1
    assert len(page.all("h1")) == 1
    assert "<script>alert('pwned')</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    for character in "\x1b\x07\x00\u202e\u2066\x9b":
        assert character not in hostile
    for _, attributes in page.elements:
        assert not [name for name in attributes if not re.fullmatch(r"[\w:-]+", name)]


def test_what_was_tried_is_next_to_the_advice_and_stays_text():
    found = sample.helped()
    rule = found.findings[0].rule
    lines = ["Tried: accepted 1.23× (1.18–1.29×) (`patch <b>.py:1`)", "Tried: no gain (`no_grad`)"]
    page = Page(html.render(found, {rule: lines, "another": ["Tried: <script>"]}))
    said = "Tried: accepted 1.23× (1.18–1.29×) (patch <b>.py:1)"
    assert page.problems == []
    assert page.text.count(said) == 2  # among the top findings, and where it is told in full
    assert "Tried: no gain (no_grad)" in page.text
    assert "Tried: <script>" not in page.text
    assert "Tried:" not in Page(html.render(found)).text


def test_every_picture_has_a_title_and_a_description():
    page = Page(rendered("helped"))
    pictures = [svg for svg in page.all("svg") if "aria-hidden" not in svg]
    assert len(pictures) == 10
    ids = {attributes.get("id") for _, attributes in page.elements}
    for picture in pictures:
        assert picture["role"] == "img"
        assert set(picture["aria-labelledby"].split()) <= ids


def test_first_screen_comes_first_and_says_it_all():
    page = Page(rendered("helped"))
    text = page.text
    first = text[: text.index("from one profiler window in eager")]
    order = [
        "Helped", "a step takes 0.790", "5.76×", "95 % interval 5.71–5.80×",
        "device clock, 8 of 9 block pairs, 640 steps timed", "1,206 steps", "4.53 s",
        "2.00 GiB → 1.00 GiB", "37 → 3", "breaks the graph", "0.212 ms per step", "12.4 s once",
    ]  # fmt: skip
    assert "2026-03-01 12:00:00 UTC" in first
    places = [first.index(words) for words in order]
    assert places == sorted(places)


def test_failed_target_is_said_before_anything_else():
    text = Page(rendered("failed")).text
    words = ["The target failed", "before a step was timed", "exit code 1 after 4.2 s", "No step"]
    places = [text.index(word, text.index("crash.py", 100)) for word in words]
    assert places == sorted(places)


def test_excerpt_marks_the_line():
    source = rendered("helped").partition('id="regions"')[0]
    marked = re.findall(
        r'class="row here"><span class="no">▸(\d+)</span>(.*?)</span></span>', source
    )
    assert [number for number, _ in marked] == ["43"]


def test_what_is_empty_differs_from_what_was_not_recorded():
    nothing = Page(rendered("empty")).text
    assert "Not recorded: no compiler log was read." in nothing
    assert "No graph break was recorded." not in nothing
    looked = Page(rendered("failed")).text
    assert "No graph break was recorded." in looked
    assert "None" not in nothing


def test_too_much_code_is_cut_and_said_to_be():
    long = "x = 1  # comment\n" * 40_000
    graphs = tuple(Graph(f"{i}/0", "forward", f"g{i}", 1, long, long) for i in range(50))
    source = html.render(structs.replace(sample.helped(), graphs=graphs))
    assert len(source.encode()) < 2_000_000
    assert "characters are left out here to keep this file small" in source


def test_absurd_figures_are_drawn_or_left_out():
    rows = (AccountRow("gemm", float("nan"), "busy"), AccountRow("copy", 1e300, "busy"))
    odd = structs.replace(
        sample.helped(),
        accounting={"eager": rows, "compiled": ()},
        pairs=({"speedup": None}, {"speedup": float("inf"), "used": True}),
        compiles=tuple(
            structs.replace(c, started_s=0.0, seconds=0.0) for c in sample.helped().compiles
        ),
    )
    page = html.render(odd)
    assert Page(page).problems == []
    assert "nan%" not in page
    assert "inf%" not in page


def test_unchecked_rules_are_grouped_by_what_they_need():
    rows = tuple(NotChecked(f"rule-{i}", f"TV{i}", "a GPU") for i in range(600, 606))
    rows += (NotChecked("other", "TV1", "a structured log", "traceview diagnose x.py"),)
    text = Page(html.render(structs.replace(sample.helped(), not_checked=rows))).text
    assert text.count("a GPU") == 1
    assert "6 rules need a GPU" in text
    assert "TV600 rule-600, TV601 rule-601" in text
    assert "1 rule needs a structured log: traceview diagnose x.py" in text


def test_columns_that_no_region_has_are_one_sentence():
    region = structs.replace(sample.helped().regions[0], share=None, recompiles=None, eager_ms=None)
    text = Page(html.render(structs.replace(sample.helped(), regions=(region,)))).text
    regions = text[text.index("One row per compiled callable") :]
    assert "Not recorded: eager ms per step, share of the step, recompiles." in regions
    table = regions[: regions.index("Fused kernels")]
    assert "Compiledms per step" in table
    assert "Recompiles" not in table


def test_long_kernel_names_are_short_with_the_whole_name_inside():
    name = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
    )
    group = structs.replace(sample.helped().kernels[0], name=name)
    page = Page(html.render(structs.replace(sample.helped(), kernels=(group,))))
    assert "vectorized_elementwise_kernel · FillFunctor" in page.text
    assert name in page.text
    assert name in [attributes.get("title") for attributes in page.all("summary")]


def test_what_is_not_known_is_left_out_of_the_first_screen():
    odd = structs.replace(sample.helped(), break_even_steps=None, counts={})
    text = Page(html.render(odd)).text
    first = text[: text.index("Where the time goes", 400)]
    assert "Break-even" not in first
    assert "Peak memory" not in first
    assert "not recorded" not in first


def test_machine_paths_are_shown_from_the_script():
    target = "/data/jobs/42/train.py"
    lines = tuple(f"{target}:{n}" for n in (31, 7, 7))
    fused = structs.replace(sample.helped().fused[0], user_lines=lines)
    moved = structs.replace(sample.helped(), target=target, fused=(fused,))
    text = Page(html.render(moved)).text
    assert "from train.py:7, 31" in text
    assert target not in text


def test_five_hundred_compiles_and_two_thousand_breaks_stay_small_and_quick():
    diagnosis = sample.large()
    began = time.process_time()
    page = html.render(diagnosis)
    assert time.process_time() - began < 3
    assert len(page.encode()) < 2_000_000
    assert Page(page).problems == []


@pytest.mark.parametrize("offset", range(len(sample_odd.ODD)))
def test_odd_numbers_are_no_words_of_the_page(offset):
    page = Page(html.render(sample.absurd(offset)))
    assert page.problems == []
    assert not re.findall(r"(?<![\w.])-?(?:nan|inf)\b(?!initi)", page.text)
    assert "None%" not in page.text


def test_more_than_a_page_has_room_for_is_cut_and_said_to_be():
    began = time.process_time()
    source = html.render(sample.many())
    assert time.process_time() - began < 5
    assert len(source.encode()) < 2_000_000
    text = Page(source).text
    for what in ("groups", "kernels", "notes", "passes", "parts", "guards", "tables"):
        assert re.search(rf"[\d,]+ more {what} are not shown here", text), what
    assert re.search(r"[\d,]+ short spans are not drawn", text)


def test_the_first_screen_says_where_the_time_went():
    text = Page(rendered("helped")).text
    said = "The 3.76 ms saved come from fusion 3.16 ms (84 %)."
    assert text.index(said) < text.index("eager time / compiled time")


def test_each_part_says_what_was_not_recorded():
    text = Page(rendered("empty")).text
    for said in (
        "Not recorded: no profiler window holds a whole step.",
        "Not recorded: this needs kernels of both eager and compiled steps.",
        "Not recorded: neither the device's limits nor the bytes of any kernel.",
        "Not recorded: no scheduler log was read.",
        "Not recorded: neither the parts of a compiled call nor the guards of a compile.",
    ):
        assert said in text


def test_what_stands_behind_a_category_names_call_and_line():
    text = Page(rendered("helped")).text
    assert re.search(r"compiled ?cudaStreamSynchronize ?/home/ada/train/model.py:43 ?0.070", text)


def test_a_kernel_of_unknown_bytes_is_said_to_be():
    text = Page(rendered("helped")).text
    limits = text[text.index("Kernels #Kernel") : text.index("Limits measured")]
    assert re.search(
        r"reduce_kernel<512> ?eager · 1× ?0.120 ?not known ?– ?– ?– ?not known", limits
    )


def test_limits_without_ceilings_say_so():
    found = structs.replace(sample.helped().explanation, ceilings=())
    text = Page(html.render(structs.replace(sample.helped(), explanation=found))).text
    assert "This run did not measure the device's limits" in text


def test_unknown_words_are_readable():
    changed = structs.replace(
        sample_explained.WATERFALL[0], effect="less_of_something", confidence="guessed"
    )
    found = structs.replace(sample.helped().explanation, waterfall=(changed,))
    text = Page(html.render(structs.replace(sample.helped(), explanation=found))).text
    assert "less of something" in text
    assert "less_of_something" not in text


def test_symptoms_stand_folded_under_their_cause_and_need_no_script():
    page = rendered("helped")
    (cause,) = re.findall(
        r'<article class="finding[^>]*>(?:(?!</article>).)*TV203.*?</article>', page, re.S
    )
    symptom = r'<details class="symptom s-error"[^>]*><summary>(.*?)</summary>'
    folded = re.search(symptom, cause, re.S)
    assert "hit the recompile limit" in folded[1]
    assert "0.310 ms per step" in folded[1]
    assert "0.310 ms per step and 12.4 s once" in cause
    assert "by itself 12.4 s once" in cause
    assert re.sub("<wbr>", "", cause).count("sched/rates.py:7 in warm") == 1


def test_compiling_in_no_phase_is_a_row_of_its_own():
    """Recording cudagraphs is one: it counts as compiling, and no phase holds it."""
    whole = sample.helped()
    longer = structs.replace(
        whole.compile_time, seconds=sum(whole.compile_time.phases.values()) + 0.5
    )
    for compiling, said in ((whole.compile_time, False), (longer, True)):
        text = Page(html.render(structs.replace(whole, compile_time=compiling))).text
        assert (
            "outside these phases: recording cudagraphs, Python around compiles0.500" in text
        ) == said


def test_evidence_links_stay_within_the_one_file():
    """A page is sent without its run folder: a file is named, never linked."""
    source = rendered("helped")
    evidence = "".join(re.findall(r'<ul class="evidence">.*?</ul>', source, re.S))
    links = re.findall(r'href="([^"]*)"', evidence)
    assert links
    assert all(link.startswith("#") for link in links)
    assert "./raw/" not in source
    assert "traceview query RUN" in Page(source).text


def test_ids_of_findings_follow_code_and_line_not_order():
    run = sample.helped()
    orders = [
        html.render(structs.replace(run, findings=findings))
        for findings in (run.findings, run.findings[::-1])
    ]
    ids = [
        {a["id"] for a in Page(page).all("article") if "finding" in a.get("class", "")}
        for page in orders
    ]
    assert ids[0] == ids[1]
    assert len(ids[0]) == len(run.findings)
    for finding in run.findings:
        line = f"-{finding.location.line}" if finding.location else ""
        assert any(i.startswith(finding.code) and i.endswith(line) for i in ids[0]), finding.code


def test_two_findings_of_one_code_at_one_line_have_ids_of_their_own():
    first = sample.helped().findings[0]
    twice = (first, structs.replace(first, title="Another one"))
    ids = [a["id"] for a in Page(pages(twice)).all("article") if "finding" in a.get("class", "")]
    assert len(set(ids)) == 2
    other = [
        a["id"] for a in Page(pages(twice[::-1])).all("article") if "finding" in a.get("class", "")
    ]
    assert other == ids[::-1]


def pages(findings):
    return html.render(structs.replace(sample.helped(), findings=findings))


def test_findings_come_second_and_details_are_folded_to_one_figure():
    source = rendered("helped")
    order = [source.index(f'id="{name}"') for name in ("verdict", "findings", "time", "limits")]
    assert order == sorted(order)
    folded = dict(
        re.findall(
            r'<details class="fold"><summary><h2>([^<]*)</h2> <span class="line">(.*?)</span>',
            source,
        )
    )
    assert folded["Compile time"].startswith("4.53")
    assert "of 9 pairs used" in folded["Block pairs"]
    assert "Where the time goes" not in folded  # open
    for line in folded.values():
        assert re.search(r"\d", line), line


def test_the_fifth_finding_and_the_rest_are_folded_to_one_line():
    first = sample.helped().findings[0]
    eight = tuple(structs.replace(first, title=f"Finding {n}") for n in range(8))
    source = pages(eight)
    assert Page(source).problems == []
    shown, _, folded = source.partition("4 more findings, from Finding 4</summary>")
    assert shown.count('<article class="finding') == 4
    assert folded.count('<article class="finding') == 4
    assert "more findings" not in pages(eight[:4])
