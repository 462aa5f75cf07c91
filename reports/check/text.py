"""The result of a gate as text: the lines, and the words that every other format uses too."""

from __future__ import annotations

import posixpath

from traceview.check.model import Checked, Result
from traceview.compare.model import Place
from traceview.reports.compare.words import spot
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_PLACES = 3


def render(checked: Checked) -> str:
    """A line for each limit that fails, or one that says "passed"; no recorded text begins one."""
    if checked.passed:
        return summary(checked)
    unread = unreadable(checked)
    return "\n".join(
        [
            *(line(result) for result in checked.of("violated")),
            *(f"too noisy: {line(result)}" for result in checked.of("too_noisy")),
            *(f"not checked: {line(result)}" for result in checked.of("not_checked")),
            *((f"{unread}.",) if unread else ()),
        ]
    )


def message(result: Result) -> str:
    """What was found, what is allowed, where: ``Speedup: 1.07×, at least 1.20× wanted``."""
    said = f"{result.severity} {result.code} {result.what}" if result.code else result.what
    if result.unit and result.found is not None:
        least = "at least " if result.at_least else ""
        said = f"{result.what}: {least}{fmt.in_unit(result.found, result.unit)}"
        if result.interval:
            said += f" (95 % interval {fmt.ratio_interval(result.interval)})"
        if result.wanted is not None and result.sense:
            allowed = "allowed" if result.sense == "at most" else "wanted"
            said += f", {result.sense} {fmt.in_unit(result.wanted, result.unit)} {allowed}"
        if result.baseline is not None and result.baseline != result.wanted:
            said += f", baseline {fmt.in_unit(result.baseline, result.unit)}"
        if result.why and result.status != "passed":
            said += f"; {result.why}"
    elif result.why:
        said += f": {result.why}"
    places = [spot(place) for place in result.places]
    if places:
        more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
        said += f" ({', '.join(places[:_PLACES])}{more})"
    return one_line(said, 500).replace(
        "##[", "## ["
    )  # GitHub runs what follows, anywhere in a line


def line(result: Result) -> str:
    """``message`` with the limit's name before it."""
    return f"{one_line(result.limit, 80)}: {message(result)}"


def unreadable(checked: Checked) -> str | None:
    """What is missing in all counts; None if nothing is."""
    if not checked.unreadable:
        return None
    pieces = fmt.plural(checked.unreadable, "piece")
    return f"{pieces} of the logs could not be read, so counts may be too low"


def summary(checked: Checked) -> str:
    """``passed``, with how many limits hold, what was not checked, and what could not be read."""
    skipped = checked.of("not_checked")
    held = fmt.plural(len({result.limit for result in checked.of("passed")}), "limit")
    said = f"{held} hold{'s' if held.startswith('1 ') else ''}"
    if skipped:
        why = "; ".join(dict.fromkeys(line(result) for result in skipped))
        said += f", {len(skipped)} not checked ({one_line(why, 400)})"
    if unread := unreadable(checked):
        said += f"; {unread}"
    if checked.passed:
        return f"passed: {said}"
    noisy = f", {many} too noisy" if (many := len(checked.of("too_noisy"))) else ""
    return f"failed: {fmt.plural(len(checked.of('violated')), 'violation')}{noisy}; {said}"


def relative(place: Place, root: str, cwd: str | None) -> str | None:
    """The file as seen from ``root``, else from where the run was started; None: outside both."""
    path = posixpath.normpath(place.path)
    if not path.startswith("/"):
        return None if path.startswith("..") else path
    for folder in (root, cwd):
        base = posixpath.normpath(folder).rstrip("/") + "/" if folder else None
        if base and path.startswith(base) and len(path) > len(base):
            return path[len(base) :]
    return None
