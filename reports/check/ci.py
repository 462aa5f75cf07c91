"""The result of a gate as a CI reads it: GitHub's commands, JUnit XML, SARIF 2.1.0.

In a GitHub workflow command, escaping is that of actions/toolkit (packages/core/src/command.ts): in
a message ``%``, CR and LF, in a property ``:`` and ``,`` besides.

In SARIF, files are relative to ``root`` (base ``%SRCROOT%``), as GitHub's code scanning reads them;
what has no place of its own points at the script, since code scanning shows nothing without a
place. Fingerprints outlive moved lines.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from traceview.check.model import Checked, Result
from traceview.reports.check.text import line, message, relative, summary, unreadable
from traceview.words.text import clean, one_line

# XML 1.0 has no way to write these; one_line has dealt with the other control characters.
_NOT_XML = re.compile("[\ufffe\uffff]")
SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
SARIF_VERSION = "2.1.0"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
Json = dict[str, Any]


def github(checked: Checked, root: str) -> str:
    """An annotation for each violation, then a line for the log.

    ``root`` is the folder that GitHub knows files from.
    """
    return "\n".join(
        [
            *(_command("error", result, checked, root) for result in checked.of("violated")),
            *(_command("error", result, checked, root) for result in checked.of("too_noisy")),
            *(_command("warning", result, checked, root) for result in checked.of("not_checked")),
            escaped(f"traceview check {summary(checked)}"),
        ]
    )


def escaped(text: str) -> str:
    """Text of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """Value of a command's property."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def _command(level: str, result: Result, checked: Checked, root: str) -> str:
    properties = {"title": f"traceview: {one_line(result.limit, 80)}"}
    place = result.places[0] if result.places else checked.script
    file = relative(place, root, checked.cwd) if place else None
    if place and file is not None:
        where = {"file": one_line(file, 400), "line": str(max(1, place.line or 1))}
        properties = {**where, **properties}
    said = message(result)
    if level == "warning":
        said = f"not checked: {said}"
    fields = ",".join(f"{name}={escaped_property(value)}" for name, value in properties.items())
    return f"::{level} {fields}::{escaped(said)}"


def junit(checked: Checked, root: str) -> str:
    """JUnit XML with its declaration: each limit is a test case."""
    counts = {
        "tests": str(len(checked.results)),
        "failures": str(len(checked.of("violated"))),
        "errors": str(len(checked.of("too_noisy"))),
        "skipped": str(len(checked.of("not_checked"))),
    }
    suites = ElementTree.Element("testsuites", {"name": "traceview", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "traceview check", **counts})
    for result in checked.results:
        place = result.places[0] if result.places else None
        file = relative(place, root, checked.cwd) if place else None
        name = result.limit if not result.code else f"{result.limit}: {result.code} {result.what}"
        about = {"classname": "traceview.check", "name": _text(name, 200)}
        if place and file is not None:
            about |= {"file": _text(file, 400), "line": str(max(1, place.line or 1))}
        case = ElementTree.SubElement(suite, "testcase", about)
        if result.status == "violated":
            kind = {"message": _text(message(result), 500), "type": _text(result.limit, 80)}
            failure = ElementTree.SubElement(case, "failure", kind)
            remedy = f"\n{_text(result.what_to_do, 2000)}" if result.what_to_do else ""
            failure.text = _text(line(result), 600) + remedy
        elif result.status == "too_noisy":
            kind = {"message": _text(message(result), 500), "type": _text(result.limit, 80)}
            ElementTree.SubElement(case, "error", kind)
        elif result.status == "not_checked":
            ElementTree.SubElement(case, "skipped", {"message": _text(message(result), 500)})
    if unread := unreadable(checked):
        ElementTree.SubElement(suite, "system-out").text = f"{unread}."
    ElementTree.indent(suites)
    text: str = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'


def _text(text: str, limit: int) -> str:
    return _NOT_XML.sub("?", one_line(text, limit))


def sarif(checked: Checked, root: str) -> str:
    """``sarif_log`` as JSON with sorted keys."""
    return json.dumps(sarif_log(checked, root), sort_keys=True, indent=2, ensure_ascii=True)


def sarif_log(checked: Checked, root: str) -> Json:
    """The SARIF log as plain data: one run, a result for each violation."""
    violated = checked.of("violated")
    rules: dict[str, Json] = {}
    for result in violated:
        name = one_line(result.rule or result.limit, 80)
        told = f"The run is beyond the limit {one_line(result.limit, 80)} of traceview check."
        if result.code:
            told = f"`traceview explain {result.code}` says what it means and what to do."
        rules[_rule_id(result)] = {
            "id": _rule_id(result),
            "name": name,
            "shortDescription": {"text": name},
            "help": {"text": told},
            "defaultConfiguration": {"level": _level(result)},
        }
    driver: Json = {"name": "traceview", "rules": list(rules.values())}
    if checked.run.traceview:
        driver["version"] = one_line(checked.run.traceview, 60)
    unknown = [
        {"level": level, "message": {"text": f"{said}: {message(result)}"}}
        for said, level, results in (
            ("too noisy", "error", checked.of("too_noisy")),
            ("not checked", "warning", checked.of("not_checked")),
        )
        for result in results
    ]
    if unread := unreadable(checked):
        unknown.append({"level": "note", "message": {"text": f"{unread}."}})
    run: Json = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": unknown}],
        "results": [_result(result, list(rules), checked, root) for result in violated],
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}


def _rule_id(result: Result) -> str:
    """A finding's code; the name of any other limit."""
    return one_line(result.code or result.limit, 80)


def _level(result: Result) -> str:
    return _LEVELS.get(result.severity or "error", "error")


def _result(result: Result, rules: list[str], checked: Checked, root: str) -> Json:
    said = line(result)
    if result.what_to_do:
        said += f"\n{clean(result.what_to_do, 2000)}"
    places = result.places or ((checked.script,) if checked.script else ())
    found = []
    for place in places:
        file = relative(place, root, checked.cwd)
        if file is not None:
            artifact: Json = {"uri": _uri(file), "uriBaseId": "%SRCROOT%"}
        else:
            artifact = {"uri": ("file://" if place.path.startswith("/") else "") + _uri(place.path)}
        physical: Json = {"artifactLocation": artifact}
        if place.line is not None and place.line >= 1:
            physical["region"] = {"startLine": place.line}
        location: Json = {"physicalLocation": physical}
        if place.function:
            function = {"name": one_line(place.function, 200), "kind": "function"}
            location["logicalLocations"] = [function]
        found.append(location)
    located: Json = {"locations": found[:1]} if found else {}
    if len(found) > 1:
        located["relatedLocations"] = found[1:]
    return {
        "ruleId": _rule_id(result),
        "ruleIndex": rules.index(_rule_id(result)),
        "level": _level(result),
        "message": {"text": said},
        "partialFingerprints": {"traceview/v1": result.fingerprint},
        **located,
    }


def _uri(path: str) -> str:
    return quote(path.encode("utf-8", "replace"), safe="/")
