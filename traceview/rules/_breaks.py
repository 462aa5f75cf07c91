"""What rules about graph breaks share: breaks by line, their cost as a finding says it, advice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from traceview.rules import _failures
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Confidence,
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Severity,
    Snippet,
    Tables,
    compile_seconds,
    first,
    from_row,
    milliseconds,
    outcome,
    plural,
    rows,
    seconds,
    short,
    shorten,
    times,
)
from traceview.rules.kit import severity as severity_by_cost
from traceview.tables import grouped
from traceview.torchtext.frames import package
from traceview.words import names

_ENDS = (
    "Dynamo cannot trace this, and fullgraph=True turns the graph break into an error. The script "
    "ends here."
)
_CAUGHT = (
    "Dynamo cannot trace this, and fullgraph=True turns the graph break into an error. The script "
    "catches the error and goes on in eager. Nothing is kept of a failed compile, so every call "
    "tries again."
)
_GIVEN_UP = (
    "Dynamo cannot resume inside a loop, try or with block, so it leaves the whole function around "
    "it in eager and compiles at most the functions that it calls."
)
_TRACED = "spent on tracing a function that then stays in eager; what it loses is not known"
_NOT_KNOWN = "of failed compiles; what compiled code would save is not known"
_ABOUT = {
    "not_measured": "host time between compiled regions: not measured",
    "one_part": "other operators of this function, in eager; compiling saves a part of them",
    "ended": "the script ends",
    "tried": _NOT_KNOWN,
    "tried_each_step": f"of each step, {_NOT_KNOWN}",
}

#: Rules that report graph breaks.
RULES = frozenset({"gb-*", "cap-customop-no-fake"})
#: Kinds of breaks whose own rule has a remedy that removes the break, wherever it is.
REMOVABLE = frozenset({"custom_op", "item", "dynamic_shape", "io"})

#: Where torch names the callee, by the type of the break: in its context or its explanation.
_CALLEES = (
    re.compile(r"module: (?P<module>[\w.]+), qualname: (?P<name>[\w.<>]+)"),
    re.compile(r"qualname: (?P<name>[\w.<>]+)"),
    re.compile(r"method `(?P<name>\w+)` of class `(?P<module>[\w.]+)`"),
    re.compile(r"builtin operator `(?P<name>\w+)`"),
    re.compile(r"trace the function `(?P<name>[^`]+)`"),
    re.compile(r"enter a `(?P<name>[^`]+)` context manager"),
    re.compile(r"unsupported builtin (?P<name>[\w.]+\w)"),  # torch 2.6
)
#: ``random.random`` and its like are methods of one hidden ``random.Random``.
_RANDOM = re.compile(r"(?:random\.)?Random\.\w+|random\.\w+")
#: What to do where Python draws a random number. A choice that changes is one variant for each way.
DRAW = (
    "Draw with torch.rand(()) and choose with torch.where: that keeps one graph, in which both "
    "sides run. Flags that are drawn before the call need one compile per combination."
)


class Site(msgspec.Struct, frozen=True):
    """The breaks of some kinds at one line: rows of ``break_sites`` (never empty) and its place.

    ``inside``: the library's line, where the break is in code that the user's line only calls.
    """

    rows: tuple[Row, ...]
    place: Location | None
    inside: Location | None = None

    @property
    def about(self) -> frozenset[str]:
        """The code after the break, which Dynamo compiles by itself; else the function around."""
        after = frozenset(code for row in self.rows for code in row["resume_functions"])
        return after or frozenset(code for row in self.rows for code in row["functions"])

    @property
    def source(self) -> str | None:
        """The user's own line, as the log quotes it."""
        return next((row["user_code"] for row in self.rows if row["user_code"]), None)

    @property
    def broken(self) -> str | None:
        """The line that breaks, be it a library's."""
        return next((row["broken_code"] for row in self.rows if row["broken_code"]), None)

    @property
    def strict(self) -> bool:
        """Whether fullgraph=True turns every break of it into an error."""
        return all(row["refused"] for row in self.rows)

    @property
    def skipped(self) -> bool:
        """Whether Dynamo left a whole function in eager because of it."""
        return any(row["frame_skipped"] for row in self.rows)

    @property
    def callee(self) -> str | None:
        """What Dynamo cannot call, as torch names it: ``zlib.crc32``; None: no useful name."""
        for row in self.rows:
            for text in filter(None, (row["context"], row["explanation"], row["gb_type"])):
                for pattern in _CALLEES:
                    if found := pattern.search(text):
                        parts = found.groupdict()
                        name = ".".join(filter(None, (parts.get("module"), parts["name"])))
                        return None if name.startswith("type.") else name
        return None

    @property
    def draws(self) -> bool:
        """Whether Python draws a random number there."""
        return _RANDOM.fullmatch(self.callee or "") is not None

    def evidence(self) -> tuple[Evidence, ...]:
        """One entry per message, with how often it is in the log."""
        seen = grouped(self.rows, by=lambda row: shorten(row["gb_type"] or row["reason"]))
        found = []
        for message, same in list(seen.items())[:MOST_EVIDENCE]:
            gb_id = next((f"{row['gb_id']}: " for row in same if row["gb_id"]), "")
            logged = times(sum(row["records"] for row in same))
            text = f"{gb_id}{message} ({logged} in the log)"
            found.append(from_row(text, "graph_breaks", same[0]))
        return tuple(found)


def sites(tables: Tables, *kinds: str) -> Iterator[Site]:
    """The user's own lines where breaks of these kinds (none given: any) happened.

    Not the line where an error of the script's own ended it, in eager as well.
    """
    own = tables.once(_failures.own_error)
    every = [
        row
        for row in rows(tables, "break_sites", in_torch=False)
        if not own or (row["file"], row["line"]) != (own[1]["error_file"], own[1]["error_line"])
    ]
    wanted = (row for row in every if not kinds or not set(kinds).isdisjoint(row["kinds"]))
    for (file, line), same in grouped(wanted, "file", "line").items():
        place = inside = None
        if file is not None and line is not None:
            place = Location(file, line, same[0]["function"])
        if same[0]["inside_file"] is not None:
            inside = Location(*(same[0][f"inside_{part}"] for part in ("file", "line", "function")))
        yield Site(tuple(same), place, inside)


def resumable(tables: Tables, *kinds: str) -> Iterator[Site]:
    """Sites of ``kinds`` where Python resumed after the graph (skipped frames: another rule)."""
    return (site for site in sites(tables, *kinds) if not site.skipped)


def given_up(tables: Tables, site: Site) -> list[Row]:
    """The compiles that ``site`` is seen in; where it cannot resume, some ended as skipped."""
    compiles = {row["compile_key"]: row for row in rows(tables, "compiles")}
    keys = dict.fromkeys(key for row in site.rows for key in row["compile_keys"])
    return [compiles[key] for key in keys if key in compiles]


def skipped_compile(tables: Tables, site: Site) -> Iterator[Evidence]:
    """The first compile that ended so."""
    for row in given_up(tables, site) if site.skipped else ():
        if row["outcome"] == "skipped":
            text = (
                f"compile {row['compile_id']} of {names.function(row['co_name'])} ended as skipped"
            )
            if row["duration_us"]:
                text += f" after {seconds(row['duration_us'] / 1e6)}"
            yield from_row(text, "compiles", row)
            return


def title(site: Site, what: str, others: Sequence[Site] = ()) -> str:
    """``Graph break at train.py:14: `.item()` ``; ``others``: more lines of the same."""
    at = short(site.place)
    if site.skipped:
        at += ", which cannot resume" + ("," if others else "")
    if others:
        at += f" and at {plural(len(others), 'other line')}"
    error = " is an error with fullgraph=True" if site.strict else ""
    return f"Graph break at {at}{error}: {what}"


def cost(tables: Tables, site: Site) -> tuple[Cost, Confidence]:
    """What is seen of the break at ``site``, from table ``break_costs``."""
    place = (site.place.file, site.place.line) if site.place else (None, None)
    known = rows(tables, "break_costs", refused=site.strict)
    row = next((row for row in known if (row["file"], row["line"]) == place), None)
    if row is None:
        return Cost(about=_ABOUT["not_measured"]), "heuristic"
    basis, ms = row["basis"], row["ms"]
    if basis == "one_part" and ms is None:
        about = "nothing more ran compiled after it in the profiled steps, so no gap was seen"
        return Cost(about=about), "heuristic"
    if basis in ("parts", "entries"):
        about = "Python at the break, and entering compiled code once more"
        if basis == "entries":
            about += " (this torch's profile does not separate them)"
        if row["lines"] > 1:
            about += f"; {row['lines']} lines share what no line shows, by the graphs entered after"
        if row["fusible_ms"]:
            most = milliseconds(row["fusible_ms"])
            about += f"; fusing across it would save more, at most {most}"
        if row["with_eager"]:
            about += "; with the operators that the function runs in eager"
    else:
        about = _ABOUT[basis]
    sure: Confidence = "measured" if row["measured"] else "derived"
    return Cost(ms, row["seconds"], about), "heuristic" if basis == "not_measured" else sure


def seen(tables: Tables, site: Site) -> tuple[Cost, Confidence]:
    """``cost``; where Dynamo gave a function up and no step shows it, what tracing that took."""
    found, confidence = cost(tables, site)
    if site.skipped and not found.ms_per_step:
        return Cost(seconds=compile_seconds(given_up(tables, site)), about=_TRACED), "heuristic"
    return found, confidence


def severity(tables: Tables, cost: Cost) -> Severity:
    """By what it costs; info too where nothing ran compiled after it and compiling did not hurt.

    Then there is no graph that it could have been fused with.
    """
    counts = first(tables, "step_counts", stance="compiled")
    alone = counts is not None and counts["gap_ms"] == 0 and cost.ms_per_step is None
    if alone and outcome(tables) in ("helped", "neutral"):
        return "info"
    return severity_by_cost(tables, cost.ms_per_step)


def at_call(site: Site, edit: str, snippet: Snippet | None) -> tuple[str, Snippet | None]:
    """``edit`` where the line that breaks is the user's; a library's stays as it is.

    Then it is the user's own call that can change, or a setting, if ``snippet`` is one. torch is
    no library here: what breaks in its functions is what the user's line asks of them.
    """
    library = package(site.inside.file) if site.inside else None
    if library in (None, "torch"):
        return edit, snippet
    advice = (
        f"The line that breaks is in {library}, so leave it: move your own call out of the "
        "compiled function, compile only the modules around it, or look for an option or a newer "
        f"version of {library} without it."
    )
    if snippet is None or not snippet.text.startswith("torch._dynamo.config."):
        return advice, None
    return f"{advice} Try the setting first: it needs no change of code.", snippet


def finding(
    tables: Tables,
    site: Site,
    *,
    code: str,
    rule: str,
    title: str,
    explanation: str,
    what_to_do: str,
    snippet: Snippet | None,
    then: str = "",
    remedy: tuple[str, ...] = (),
    others: Sequence[Site] = (),
) -> Finding:
    """What a rule says of the break at ``site``, with all that is known of that place.

    ``what_to_do`` and ``snippet`` are for a line of the user's own that breaks. ``then``: what
    Dynamo does, where it can resume. ``others``: more lines that one remedy serves.
    """
    what_to_do, snippet = at_call(site, what_to_do, snippet)
    whole, confidence = seen(tables, site)
    for other in others:
        more, _ = seen(tables, other)
        pairs = (whole.ms_per_step, more.ms_per_step), (whole.seconds, more.seconds)
        known = ([part for part in pair if part is not None] for pair in pairs)
        ms, spent = (sum(parts) if parts else None for parts in known)
        whole = Cost(ms, spent, whole.about)
    ended = site.strict and bool(rows(tables, "break_costs", basis="ended"))
    if site.skipped:
        level, then = severity_by_cost(tables, whole.ms_per_step), _GIVEN_UP
    else:
        level = "error" if ended else severity(tables, whole)
    explanation = f"{explanation} {then}".rstrip()
    return Finding(
        code=code,
        rule=rule,
        severity=level,
        title=title,
        explanation=(_ENDS if ended else _CAUGHT) if site.strict else explanation,
        cost=whole,
        confidence=confidence,
        location=site.place,
        inside=site.inside,
        also_at=tuple(other.place for other in others if other.place),
        about=frozenset().union(*(each.about for each in (site, *others))),
        evidence=(*site.evidence(), *skipped_compile(tables, site)),
        what_to_do=what_to_do,
        snippet=snippet,
        remedy=remedy,
    )
