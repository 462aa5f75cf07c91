"""Do the outputs agree? The table of the page, and the line on the terminal."""

import sample
from msgspec import structs

from traceview.diagnosis.model import ComparedOutputs, OutputCheck
from traceview.reports import html, terminal

ROUNDED = OutputCheck(
    "compiled", "inductor", "output.logits", "bfloat16", 4096, 0.43, 0.05, 0.021, 0.047, 0.9987,
    0, 0.141, True, None,
)  # fmt: skip
AGAIN = structs.replace(ROUNDED, run="eager_again", backend=None, max_abs_diff=0.0)
WRONG = structs.replace(
    ROUNDED, run="ladder", backend="aot_eager", same=False, differing=679, max_abs_diff=0.0
)
FAILED = OutputCheck(*("ladder", "inductor"), *(None,) * 11, "<b>CppCompileError</b>")
FOUND = (
    ComparedOutputs(0, "Net", "agree", None, "float64", None, False, (AGAIN, ROUNDED)),
    ComparedOutputs(1, "Head", "differ", None, None, "no float64", False, (WRONG, FAILED)),
    ComparedOutputs(2, "Loop", "not_compared", "it can't be copied", None, None, False),
)
COMPARED = structs.replace(sample.helped(), outputs=FOUND)


def section():
    page = html.render(COMPARED)
    return page[page.index('<div id="outputs">') : page.index('<div id="fusion">')]


def test_every_number_has_its_name():
    table = section()
    for name in ("Largest difference<small>from eager", "RMSE<small>against float64",
                 "RMSE of eager<small>against float64", "Cosine<small>with eager"):  # fmt: skip
        assert name in table
    row = table[table.index("compiled<small>") :].partition("</tr>")[0]
    assert [figure in row for figure in ("0.43", "0.021", "0.047", "0.998700")] == [True] * 4
    assert "yes, up to 0.14" in row


def test_what_is_missing_is_said():
    table = section()
    assert "Not compared: it can&#39;t be copied." in table
    assert "There is no run in float64 to compare with (no float64)." in table
    assert "not run: &lt;b&gt;CppCompileError" in table
    assert "no: 679 elements NaN or infinite on one side" in table


def test_eagers_own_repetition_is_a_sentence():
    assert "Run twice, eager gives the same bits." in section()
    assert "eager_again" not in section()
    unlike = structs.replace(AGAIN, max_abs_diff=0.5)
    one = structs.replace(FOUND[0], checks=(unlike, ROUNDED))
    page = html.render(structs.replace(COMPARED, outputs=(one,)))
    assert "Run twice, eager itself differs, by up to 0.5." in page


def test_one_line_on_the_terminal():
    text = terminal.render(COMPARED, 100, color=False)
    assert "outputs of compiled callables: 1 like eager's, 1 unlike eager's, 1 not compared" in text


def test_without_the_option_nothing_is_said_of_outputs():
    page = html.render(sample.helped())
    assert 'id="outputs"' not in page
    assert '"#outputs"' not in page
    assert "outputs of compiled callables" not in terminal.render(sample.helped(), 100, color=False)
