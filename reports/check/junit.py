"""The result of a gate as JUnit XML: each limit is a test case."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from traceview.check.model import Checked
from traceview.reports.check.text import line, message, relative
from traceview.words.text import one_line

# XML 1.0 has no way to write these; one_line has dealt with the other control characters.
_NOT_XML = re.compile("[\ufffe\uffff]")


def render(checked: Checked, root: str) -> str:
    """The document, with its declaration."""
    failed, skipped = (len(checked.of(status)) for status in ("violated", "not_checked"))
    counts = {"tests": str(len(checked.results)), "failures": str(failed)}
    counts |= {"errors": "0", "skipped": str(skipped)}
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
        elif result.status == "not_checked":
            ElementTree.SubElement(case, "skipped", {"message": _text(message(result), 500)})
    ElementTree.indent(suites)
    text: str = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'


def _text(text: str, limit: int) -> str:
    return _NOT_XML.sub("?", one_line(text, limit))
