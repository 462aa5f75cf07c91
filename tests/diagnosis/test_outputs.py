"""Whether the outputs agree, in one word a callable."""

import pytest

from traceview.derive.facts import add_facts
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.step import accuracy, compared_outputs
from traceview.tables import Tables, from_rows


def tables(*checks, faults=(), more=None, **told):
    one = {"pass": "cold", "pid": 1, "region_id": 0}
    trial = {**one, "compared": True, "draws_random": False, **told}
    known = {**one, "output": "output", **(more or {})}
    rows = [{**known, "run": run, "same": same} for run, same in checks]
    made = Tables(
        {
            "regions": from_rows("regions", [{**one, "name": "Net"}]),
            "output_trials": from_rows("output_trials", [trial]),
            "output_checks": from_rows("output_checks", rows),
            "output_faults": from_rows("output_faults", [{**one, **fault} for fault in faults]),
        }
    )
    add_facts(made)
    return made


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ([("compiled", True)], "agree"),
        ([("compiled", True), ("compiled", False)], "differ"),
        ([("compiled", False), ("fallback_random", True)], "random"),
        ([("compiled", False), ("fallback_random", False), ("ladder", True)], "rounding"),
        ([("compiled", False), ("ladder", True), ("ladder", False)], "differ"),
        ([("compiled", False), ("fallback_random", None), ("ladder", None)], "differ"),
        ([("eager_again", True)], "not_compared"),
    ],
)
def test_the_outcome(checks, outcome):
    (one,) = compared_outputs(tables(*checks), Focus("cold", None, 1))
    assert (one.name, one.outcome, len(one.checks)) == ("Net", outcome, len(checks))


def test_what_was_not_compared_says_why():
    found = tables(compared=False, why="no room", draws_random=None)
    (one,) = compared_outputs(found, Focus("cold", None, 1))
    assert (one.outcome, one.why, one.checks) == ("not_compared", "no room", ())


def test_without_the_option_there_is_nothing():
    assert compared_outputs(Tables(), Focus("cold", None, None)) == ()


def test_the_answer_has_what_a_fault_was_followed_to():
    wrong = {"why": "shape", "what": "output", "backend": "inductor"}
    fault = {
        "operator": "aten.add", "file": "net.py", "line": 3, "part_file": None,
        "result": "z", "element": [1], "eager": 1.0, "compiled": 2.0, "script": "accuracy/0.py",
    }  # fmt: skip
    found = tables(("compiled", False), ("ladder", False), more=wrong, faults=[fault])
    _, answer = accuracy(found)
    (difference,) = answer["differences"]
    assert (difference["operator"], difference["script"]) == ("aten.add", "accuracy/0.py")
    assert difference["location"] == {"file": "net.py", "line": 3}
    assert difference["callable_location"] == {"file": None, "line": None}
    (named,) = answer["faults"]
    assert named["location"] == {"file": "net.py", "line": 3}
    assert named["part_location"] is None
    assert named["worst"] == {
        "result": "z", "element": [1], "eager": 1.0, "compiled": 2.0, "float64": None,
    }  # fmt: skip
    assert accuracy(tables(("compiled", True)))[1]["faults"] == []


END = {
    "pass": "cold", "pid": 1, "region_id": 0, "compared": True, "name": "gradient of weight w",
    "relative_error": 0.4, "noise": 1e-6, "low_precision": False, "operators": [],
}  # fmt: skip


OWN = {"file": "net.py", "line": 9}
RECORDED = {"without_cudagraph": 1e-7, "operators": ["inductor.x", "shop.scale"], **OWN}
KEPT = {"without_cudagraph": 0.4, "constant": "scale", **OWN}


@pytest.mark.parametrize(
    ("end", "stage", "part", "named"),
    [
        (RECORDED, "cudagraph", "cudagraph", "shop.scale"),
        (KEPT, "script", "constant", "scale"),
        ({}, "script", None, None),
    ],
)
def test_only_the_code_that_the_script_compiled_is_wrong(end, stage, part, named):
    found = tables(("compiled", True))
    found.put("end_checks", from_rows("end_checks", [END | end]))
    (one,), answer = accuracy(found)
    assert one.own_code.recorded == (part == "cudagraph")
    (difference,), (fault,) = answer["differences"], answer["faults"]
    assert (answer["verdict"], difference["what"], difference["direction"]) == (
        "differ", "gradient", "backward",
    )  # fmt: skip
    assert (difference["stage"], difference["operator"], fault["part"]) == (stage, named, part)
    assert difference["location"] == {"file": end.get("file"), "line": end.get("line")}
    assert (fault["not_found"] is None) == (part is not None)


def test_what_a_stage_of_the_compiler_shows_is_not_the_scripts_own_code():
    wrong = {"why": "shape", "what": "output", "backend": "inductor"}
    found = tables(("compiled", False), ("ladder", False), more=wrong)
    found.put("end_checks", from_rows("end_checks", [END]))
    (one,), answer = accuracy(found)
    assert one.own_code is None
    assert [each["stage"] for each in answer["differences"]] == ["inductor"]
