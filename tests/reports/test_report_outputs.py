"""Do the outputs agree? The table of the page, and the line on the terminal."""

import sample
from msgspec import structs

from traceview.diagnosis.model import ComparedOutputs, OutputCheck, OutputDifference, OwnCode
from traceview.reports import html, terminal
from traceview.reports.phrases import accuracy_answer

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


BACKWARD = OutputDifference(
    "gradient", "gradient of weight head.bias", "aot_eager", "backward", 0.31, 2e-7, 1.0, 0, None
)
MASK = OutputDifference("output", "output", None, "forward", None, None, None, 3, None)


def answered(verdict, *found, left_out=()):
    return accuracy_answer(found, {"verdict": verdict, "not_compared": list(left_out)})


def test_the_answer_of_accuracy_names_what_is_wrong_and_where():
    wrong = structs.replace(FOUND[1], differences=(BACKWARD,), file="/u/train.py", line=7)
    text = answered("differ", FOUND[0], wrong)
    first, _, head, *_ = text.splitlines()
    assert first == "Compiled results differ from eager's in 1 of 2 callables."
    assert head == "Head (train.py:7): wrong"
    assert "gradient of weight `head.bias`: relative error 0.31, eager's 2e-07" in text
    assert 'In the backward, first with backend="aot_eager": AOTAutograd' in text
    whole = answered("differ", structs.replace(FOUND[1], differences=(MASK,)))
    assert "output: 3 elements differ\n" in whole
    assert "no stage of the compiler alone shows it" in whole


def test_the_answer_of_accuracy_tells_the_scripts_own_code_from_the_compiler():
    own = OwnCode("output", 0.0907, 6e-7, True, ("gates.sharpen",), None, "/u/gate.py", 10)
    text = answered("differ", structs.replace(FOUND[0], own_code=own))
    assert "Compiled results differ from eager's in 1 of 1 callable." in text
    assert "output: differs from eager by 9.1 %; roundings make 6e-07" in text
    assert "compiled again it is right.\n  Its cudagraph replays what has changed" in text
    kept = structs.replace(own, recorded=False, operators=(), constant="scale")
    text = answered("differ", structs.replace(FOUND[1], differences=(MASK,), own_code=kept))
    assert "output: 3 elements differ\n  Only in the code that the script compiled" in text
    assert text.endswith("It keeps what scale() gave while it was compiled.")


def test_the_answer_of_accuracy_says_what_was_compared():
    checks = [structs.replace(ROUNDED, what=what) for what in ("output", "gradient", "gradient")]
    one = structs.replace(FOUND[0], checks=tuple(checks), random_state_same=False)
    text = answered("agree", one)
    assert text.startswith("Compiled results agree with eager's in 1 callable.")
    assert "Net: 1 output, 2 gradients compared" in text
    assert "random generators in different states" in text
    reason = {"callable": "Loop", "name": None, "reason": "it can't be copied"}
    text = answered("not_compared", FOUND[2], left_out=[reason])
    assert text == "Nothing was compared.\n\nNot compared: Loop: it can't be copied"


def test_layouts_that_are_the_same_are_no_rows():
    layout = structs.replace(ROUNDED, output="layout of output", what="layout")
    page = html.render(
        structs.replace(COMPARED, outputs=(structs.replace(FOUND[0], checks=(ROUNDED, layout)),))
    )
    assert "layout of output" not in page


FAULT = {
    "callable_location": {"file": "/u/train.py", "line": 7}, "operator": "aten.add",
    "operators": ["aten.mul", "aten.add"], "location": {"file": "/u/net.py", "line": 3},
    "module": "0 (Linear)", "part": "lowering", "part_name": "aten.add", "graph": "backward",
    "part_location": {"file": "/u/low.py", "line": 5}, "kernel": "cpp_fused_add_0",
    "worst": {"result": "z", "element": [1, 2], "eager": 1.0, "compiled": 2.5, "float64": 1.0},
    "remedies": ["backend=aot_eager"], "script": None, "reproduced": None,
    "no_script": "it is your own", "not_found": None,
}  # fmt: skip


def test_the_answer_of_accuracy_follows_a_fault():
    wrong = structs.replace(FOUND[1], differences=(MASK,), file="/u/train.py", line=7)
    told = {"verdict": "differ", "not_compared": [], "faults": [FAULT]}
    lines = [each.strip() for each in accuracy_answer((wrong,), told).splitlines()]
    assert lines[-5:] == [
        "Operator: aten.add at net.py:3 (with aten.mul, aten.add)",
        "Done by: lowering: aten.add, yours at low.py:5, in the backward graph,"
        " kernel cpp_fused_add_0",
        "Worst element: z[1, 2] is 2.5, in eager 1, float64 1",
        "Right with: backend=aot_eager",
        "No script: it is your own.",
    ]
    more = {"location": None, "part": None, "worst": None, "remedies": [], "operators": []}
    more |= {"script": "run/0.py", "reproduced": 3, "not_found": "no time"}
    odd = {"result": "z", "element": [], "eager": 1.0, "compiled": None, "float64": None}
    told["faults"] = [FAULT | {"worst": odd}]
    text = accuracy_answer((wrong,), told)
    assert "Worst element: z is NaN or infinite, in eager 1\n" in text
    told["faults"] = [FAULT | more]
    lines = [each.strip() for each in accuracy_answer((wrong,), told).splitlines()]
    assert lines[-3:] == [
        "Operator: aten.add in module 0 (Linear)",
        "Script: run/0.py (reproduces 3 of 3)",
        "Not found: no time.",
    ]
