"""The result of a gate as SARIF 2.1.0, as GitHub's code scanning reads it.

Files are relative to ``root`` (base ``%SRCROOT%``); what has no place of its own points at the
script, since code scanning shows nothing without a place. Fingerprints outlive moved lines.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from traceview.check.model import Checked, Result
from traceview.compare.model import Place
from traceview.reports.check.text import line, message, relative
from traceview.words.text import clean, one_line

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
VERSION = "2.1.0"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
Json = dict[str, Any]


def render(checked: Checked, root: str) -> str:
    """One document with sorted keys."""
    return json.dumps(document(checked, root), sort_keys=True, indent=2, ensure_ascii=True)


def document(checked: Checked, root: str) -> Json:
    """The SARIF log as plain data: one run, a result for each violation."""
    violated = checked.of("violated")
    rules = {_rule_id(result): result for result in violated}
    driver: Json = {"name": "traceview", "rules": [_rule(result) for result in rules.values()]}
    if checked.run.traceview:
        driver["version"] = one_line(checked.run.traceview, 60)
    skipped = [
        {"level": "warning", "message": {"text": f"not checked: {message(result)}"}}
        for result in checked.of("not_checked")
    ]
    run: Json = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": skipped}],
        "results": [_result(result, list(rules), checked, root) for result in violated],
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _rule_id(result: Result) -> str:
    """A finding's code; the name of any other limit."""
    return one_line(result.code or result.limit, 80)


def _rule(result: Result) -> Json:
    name = one_line(result.rule or result.limit, 80)
    told = f"The run is beyond the limit {one_line(result.limit, 80)} of traceview check."
    if result.code:
        told = f"`traceview explain {result.code}` says what it means and what to do."
    return {
        "id": _rule_id(result),
        "name": name,
        "shortDescription": {"text": name},
        "help": {"text": told},
        "defaultConfiguration": {"level": _level(result)},
    }


def _level(result: Result) -> str:
    return _LEVELS.get(result.severity or "error", "error")


def _result(result: Result, rules: list[str], checked: Checked, root: str) -> Json:
    said = line(result)
    if result.what_to_do:
        said += f"\n{clean(result.what_to_do, 2000)}"
    places = result.places or ((checked.script,) if checked.script else ())
    found = [_location(place, checked, root) for place in places]
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


def _location(place: Place, checked: Checked, root: str) -> Json:
    file = relative(place, root, checked.cwd)
    if file is not None:
        artifact: Json = {"uri": _uri(file), "uriBaseId": "%SRCROOT%"}
    else:
        artifact = {"uri": ("file://" if place.path.startswith("/") else "") + _uri(place.path)}
    physical: Json = {"artifactLocation": artifact}
    if place.line is not None and place.line >= 1:
        physical["region"] = {"startLine": place.line}
    found: Json = {"physicalLocation": physical}
    if place.function:
        found["logicalLocations"] = [{"name": one_line(place.function, 200), "kind": "function"}]
    return found


def _uri(path: str) -> str:
    return quote(path.encode("utf-8", "replace"), safe="/")
