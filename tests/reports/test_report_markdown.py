import re

import pytest
import sample
import sample_odd
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from traceview.diagnosis.model import GraphBreakSite
from traceview.reports import markdown
from traceview.reports.markdown import fenced
from traceview.rules.finding import Snippet

OPEN, CLOSE = re.compile(r"<details><summary>"), re.compile(r"^</details>$", re.M)


def without_code(text):
    """The Markdown less fenced blocks and inline code: what GitHub would read as markup."""
    text = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.M | re.S)
    return re.sub(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)


@pytest.mark.parametrize("name", sample.ALL)
def test_it_fits_a_ticket_and_its_details_are_balanced(name):
    text = markdown.render(sample.ALL[name]())
    assert len(text.encode()) < 60_000
    assert len(OPEN.findall(text)) == len(CLOSE.findall(text))


@pytest.mark.parametrize("size", [0, 3000])
def test_hostile_text_breaks_out_of_nothing(size):
    text = without_code(markdown.render(sample.hostile(size)))
    tags = set(re.findall(r"<[^>\n]*>?", text))
    assert {tag for tag in tags if not tag.startswith(("<details><", "<summary>"))} <= {
        "</summary>", "</details>", "<details>",
    }  # fmt: skip
    links = re.findall(r"(?<!\\)\]\((.*?)\)", text)
    assert all(link.startswith("https://meta-pytorch.github.io/") for link in links)
    assert not re.search(r"(?<!\\)!\[", text)
    assert "@a" not in text
    assert "\x1b" not in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    text = markdown.render(sample.hostile(0))
    cells = None
    for line in text.splitlines():
        if not line.startswith("|"):
            cells = None
            continue
        found = len(re.findall(r"(?<!\\)\|", line))
        cells = cells or found
        assert found == cells, line


@given(st.text(alphabet="`ab \n", max_size=80))
def test_a_fence_is_longer_than_what_it_holds(text):
    lines = fenced(text, "python").splitlines()
    fence = lines[0].removesuffix("python")
    assert lines[-1] == fence
    assert not any(line.strip().startswith(fence) for line in lines[1:-1])


def test_snippet_with_a_fence_of_its_own():
    finding = sample.finding(snippet=Snippet("shell", "echo\n````\n</details>\n"))
    text = markdown.render(structs.replace(sample.helped(), findings=(finding,)))
    assert "`````shell\necho\n````\n</details>\n`````" in text


def test_what_does_not_fit_is_said_to_be_left_out():
    site = GraphBreakSite("a.py", 1, "f", "GB0124", "r" * 300, 1, None, (), False)
    findings = tuple(sample.finding(explanation="word " * 2000) for _ in range(20))
    snippet = Snippet("python", "y = 2\n" * 600)
    findings = tuple(structs.replace(f, snippet=snippet) for f in findings)
    big = structs.replace(sample.helped(), findings=findings, graph_breaks=(site,) * 90)
    text = markdown.render(big)
    assert len(text.encode()) < 60_000
    assert text.endswith(
        "_The rest is left out to fit an issue tracker; `report.html` has all of it._"
    )


def test_torch_page_of_a_graph_break_is_linked():
    assert "[GB0124](https://meta-pytorch.github.io/" in markdown.render(sample.helped())


def test_what_was_not_there_is_one_line_and_no_empty_fold():
    text = markdown.render(structs.replace(sample.helped(), recompiles=(), graph_breaks=()))
    assert "No recompile and no graph break was recorded." in text
    assert "<summary>Recompiles" not in text


def test_times_by_category_stand_side_by_side_with_their_difference():
    text = markdown.render(sample.helped())
    assert "| elementwise operators | 3.420 | – | −3.420 |" in text
    assert "| matrix products | 0.310 | 0.310 | 0.000 |" in text


def test_the_explanation_is_told_in_tables():
    text = markdown.render(sample.helped())
    assert "The 3.76 ms saved come from fusion 3.16 ms" in text
    assert "| fusion | 3.540 | 0.380 | −3.160 |" in text
    assert "| **The step** | 4.550 | 0.790 | −3.760 |" in text
    assert "34 kernels, 3.42 ms → 1 kernel, 0.380 ms" in text
    assert "At the limit this step would take 0.62 ms" in text
    assert "copy 4,010 GB/s" in text
    assert "| `reduce_kernel<512>` | eager | not known | 0.120 | not known | – | – | – |" in text
    folded = text[text.index("Fusion, in words") :]
    assert folded.index("**not fused**") < folded.index("**fused**")
    assert re.search(r"\*\*fused\*\*: .* \([\d,.]+ .?i?B saved per call\)", folded)
    assert re.search(
        r"\*\*not fused\*\*: .* \([\d,.]+ .?i?B that fusing would save per call\)", folded
    )
    assert "| Pass or graph | Compile | Nodes before | Nodes after |" in folded
    assert "| all guards of the compile | " in folded


def test_odd_numbers_are_no_words_of_a_ticket():
    for offset in range(len(sample_odd.ODD)):
        assert not re.findall(r"(?<![\w.])-?(?:nan|inf)\b", markdown.render(sample.absurd(offset)))


def test_what_follows_from_a_cause_is_listed_under_it():
    page = markdown.render(sample.helped())
    cause = page[page.index("TV203") : page.index("TV510")]
    assert "0.310 ms per step and 12.4 s once · by itself 12.4 s once" in cause
    assert "\nWhat follows from it:\n\n- **TV202** `lr` hit the recompile limit (8) (error" in cause
    assert "/schedule.py:18 in lr → sched/rates.py:7 in warm`" in cause
