"""The formats of a gate: well-formed, escaped, in the places where their readers look."""

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from msgspec.structs import replace
from sides import changed, poisoned, side

from traceview.check import check
from traceview.check.limits import limits_of
from traceview.check.model import schema, to_json
from traceview.compare.model import Place
from traceview.contracts import text_of
from traceview.reports.check import ci, text
from traceview.reports.check.text import relative

ROOT = "/somewhere/else"
ASKED = {
    "max-breaks": 0, "min-speedup": 9, "max-recompiles": 1, "max": {"warm_compile_seconds": 1},
    "no": ["findings", "new-findings"], "missing": "skip",
}  # fmt: skip


def checked(hostile=False):
    run, old = side("bad-gb_item"), side("good-gb_item")
    if hostile:
        run, old = poisoned(run), poisoned(old)
    return check(run, limits_of(ASKED, "the command line"), old)


@pytest.fixture(params=[False, True], ids=["plain", "hostile"])
def gate(request):
    return checked(request.param)


def test_text_is_a_line_for_each_violation(gate):
    lines = text.render(gate).splitlines()
    skipped = len(gate.of("not_checked"))
    assert len(lines) == len(gate.of("violated")) + skipped
    assert sum(line.startswith("not checked: ") for line in lines) == skipped == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text.render(gate).replace("\n", ""))


def test_passed_is_one_line():
    passed = check(side("good-gb_item"), limits_of({"max-breaks": 0}, ""))
    assert text.render(passed) == "passed: 1 limit holds"


def test_json_fits_its_schema(gate):
    data = json.loads(text_of(to_json(gate)))
    jsonschema.Draft202012Validator(schema()).validate(data)
    assert data["passed"] is False


def test_github_commands_cannot_be_left(gate):
    lines = ci.github(gate, ROOT).splitlines()
    commands = [line for line in lines if line.startswith("::")]
    assert len(commands) == len(gate.results) - len(gate.of("passed"))
    assert len(lines) == len(commands) + 1
    for line in commands:
        properties, _, message = line[2:].partition("::")
        name, _, fields = properties.partition(" ")
        assert name in ("error", "warning")
        keys = [field.partition("=")[0] for field in fields.split(",")]
        assert keys in (["file", "line", "title"], ["title"])
        assert not re.search(r"%(?!25|0A|0D|3A|2C)", properties + message)


def test_github_annotates_the_line():
    first = ci.github(checked(), ROOT).splitlines()[0]
    assert first.startswith("::error file=gb_item.py,line=16,title=traceview%3A max-breaks::")


def test_escapes_are_those_of_the_toolkit():
    assert ci.escaped("50%\r\na:b,c") == "50%25%0D%0Aa:b,c"
    assert ci.escaped_property("50%\r\na:b,c") == "50%25%0D%0Aa%3Ab%2Cc"


def test_junit_parses_and_counts(gate):
    root = ElementTree.fromstring(ci.junit(gate, ROOT).encode())
    (suite,) = root
    cases = list(suite)
    assert root.tag == "testsuites"
    assert int(suite.attrib["tests"]) == len(cases) == len(gate.results)
    assert int(suite.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
    assert int(suite.attrib["skipped"]) == sum(case.find("skipped") is not None for case in cases)
    assert int(suite.attrib["failures"]) == len(gate.of("violated"))


def test_sarif_is_what_code_scanning_reads(gate):
    log = json.loads(ci.sarif(gate, ROOT))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert len(run["results"]) == len(gate.of("violated"))
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"]["traceview/v1"])
        for place in result.get("locations", []):
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"(file://)?[\w./~%-]+", uri, re.ASCII)
            assert place["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 1


@pytest.mark.skipif("SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names no schema file")
def test_sarif_fits_the_schema_of_oasis(gate):
    official = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text("utf-8"))
    jsonschema.Draft7Validator(official).validate(json.loads(ci.sarif(gate, ROOT)))


def test_places_in_sarif():
    results = ci.sarif_log(checked(), ROOT)["runs"][0]["results"]
    by_rule = {result["ruleId"]: result for result in results}
    place = by_rule["TV101"]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "gb_item.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 16}
    script = by_rule["min-speedup"]["locations"][0]["physicalLocation"]
    assert script["artifactLocation"]["uri"] == "gb_item.py"


def test_a_file_outside_of_the_root_is_an_address():
    result = replace(checked().of("violated")[0], places=(Place("ü b.py", 3, None, "/x/ü b.py"),))
    gate = replace(checked(), results=(result,), cwd="/elsewhere")
    (found,) = ci.sarif_log(gate, ROOT)["runs"][0]["results"]
    uri = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(uri) == "file:///x/ü b.py"
    assert uri.isascii()


@pytest.mark.parametrize(
    ("path", "root", "cwd", "said"),
    [
        ("/r/a/b.py", "/r", None, "a/b.py"), ("/c/a.py", "/r", "/c", "a.py"),
        ("/c/../etc/passwd", "/r", "/c", None), ("a.py", "/r", None, "a.py"),
        ("../a.py", "/r", None, None), ("/ra/b.py", "/r", None, None), ("/r", "/r", None, None),
        ("/r/x/../b.py", "/r/", None, "b.py"), ("/b.py", "/", None, "b.py"),
    ],
)  # fmt: skip
def test_files_are_named_from_the_root(path, root, cwd, said):
    assert relative(Place("x", 1, None, path), root, cwd) == said


def uncertain(data):
    data["verdict"] |= {"outcome": "neutral", "speedup": 1.05, "speedup_interval": [0.9, 1.3]}


MISSING = {"max": {"warm_compile_seconds": 1}}
#: What is asked → passed?; status in JSON; line of text; element in JUnit; results and levels of
#: notifications in SARIF; command of GitHub's.
STATES = {
    "passed": ({"max-breaks": 9}, True, "passed", "passed: 1 limit", None, 0, "", "traceview "),
    "violated": (
        {"max-breaks": 0},
        False,
        "violated",
        "max-breaks: ",
        "failure",
        1,
        "",
        "::error ",
    ),
    "not measured": (MISSING, False, "violated", "max warm", "failure", 1, "", "::error "),
    "allowed to be missing": (
        {**MISSING, "missing": "skip"},
        *(True, "not_checked", "passed: 0", "skipped", 0, "warning", "::warning "),
    ),
    "too noisy": (
        {"min-speedup": 1},
        *(False, "too_noisy", "too noisy: min-", "error", 0, "error", "::error "),
    ),
    "allowed to be noisy": (
        {"min-speedup": 1, "missing": "skip"},
        *(True, "not_checked", "passed: 0", "skipped", 0, "warning", "::warning "),
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_each_state_is_one_of_its_own_in_every_format(state):
    asked, passes, status, line, element, results, level, command = STATES[state]
    found = check(changed(side("bad-gb_item"), uncertain), limits_of(asked, "here"))
    data = to_json(found)
    assert (found.passed, data["passed"]) == (passes, passes)
    assert [each["status"] for each in data["results"]] == [status]
    assert text.render(found).startswith(line)
    (case,) = ElementTree.fromstring(ci.junit(found, ROOT).encode()).iter("testcase")
    assert [child.tag for child in case] == [element] * (element is not None)
    (log,) = ci.sarif_log(found, ROOT)["runs"]
    notes = log["invocations"][0]["toolExecutionNotifications"]
    assert len(log["results"]) == results
    assert [each["level"] for each in notes] == [level] * bool(level)
    assert ci.github(found, ROOT).startswith(command)
