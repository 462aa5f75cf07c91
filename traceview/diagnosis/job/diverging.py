"""What ranks do differently, with the first line that differs between two of them."""

from __future__ import annotations

import re
from itertools import groupby, zip_longest
from operator import itemgetter

import polars as pl

from traceview.derive.job.divergence import NOISE
from traceview.diagnosis.job.model import Divergence, RankGroup
from traceview.diagnosis.job.subject import (
    Row,
    Subject,
    cut,
)
from traceview.torchtext.fx import collectives, lines
from traceview.words import names

MOST, MOST_GROUPS = 30, 8
#: Characters around the first difference of two long lines.
_AROUND = 60
_KINDS = {
    "graph": "different graphs",
    "guards": "the same graph under different guards",
    "collectives": "collectives in different orders",
}
#: torch's own code around what is compiled: a difference there follows from another one.
_OWN = re.compile(r"/torch/_dynamo/")

Pair = tuple[str | None, str | None]


def divergences(subject: Subject) -> tuple[tuple[Divergence, ...], int]:
    """(differences, those of the slowest functions first; how many more)."""
    rows = subject.rows("job_divergence")
    order = {code: number for number, code in enumerate(map(_code, subject.rows("job_frames")))}
    groups = [list(found) for _, found in groupby(rows, key=itemgetter("difference"))]
    groups.sort(
        key=lambda found: (
            found[0]["kind"] != "collectives",
            bool(_OWN.search(found[0]["co_filename"] or "")),
            order.get(_code(found[0]), len(order)),
        )
    )
    return tuple(_divergence(subject, found) for found in groups[:MOST]), max(0, len(groups) - MOST)


def _code(row: Row) -> tuple[object, ...]:
    return row["co_name"], row["co_filename"], row["co_firstlineno"]


def _divergence(subject: Subject, rows: list[Row]) -> Divergence:
    kind, first = rows[0]["kind"], rows[0]
    name = names.function(first["co_name"])
    groups = tuple(
        RankGroup(subject.ranks(row["ranks"]), _group_text(row)) for row in rows[:MOST_GROUPS]
    )
    before, after, file, line = _parting(subject, rows)
    if kind == "frames":
        most, least = groups[0], groups[-1]
        text = f"{least.ranks.text} compiled {name} {least.text}, {most.ranks.text} {most.text}"
    else:
        nth = f"compile {first['compile_index'] + 1} of {name}"
        text = f"{nth}: {_KINDS[kind]} on {groups[0].ranks.text} and on {groups[-1].ranks.text}"
    return Divergence(
        kind=kind,
        name=name,
        file=first["co_filename"],
        line=first["co_firstlineno"],
        text=text,
        groups=groups,
        before=cut(before),
        after=cut(after),
        place_file=file,
        place_line=line,
    )


def _group_text(row: Row) -> str:
    if row["kind"] != "frames":
        return f"{row['kind']} {(row['digest'] or '')[:8]}"
    return {"0": "not at all", "1": "once", "2": "twice"}.get(
        row["digest"], f"{row['digest']} times"
    )


def _parting(
    subject: Subject, rows: list[Row]
) -> tuple[str | None, str | None, str | None, int | None]:
    """The first difference between the first group and the last, and the user's line behind it."""
    keys = (rows[0]["compile_key"], rows[-1]["compile_key"])
    kind = rows[0]["kind"]
    if None in keys or kind == "frames":
        return None, None, None, None
    if kind == "graph":
        graphs = subject.frame("graphs").filter(pl.col("kind") == "dynamo_output")
        return _first_line(*(_texts(graphs, key, "text") for key in keys))
    if kind == "guards":
        guards = [_texts(subject.frame("guards"), key, "guard") for key in keys]
        known = [{NOISE.sub("", text) for text in found} for found in guards]
        before = next((text for text in guards[0] if NOISE.sub("", text) not in known[1]), None)
        after = next((text for text in guards[1] if NOISE.sub("", text) not in known[0]), None)
        return before, after, None, None
    orders = [_orders(subject, key) for key in keys]
    for number, (one, other) in enumerate(zip_longest(*orders), 1):
        if one != other:
            return f"collective {number}: {one}", f"collective {number}: {other}", None, None
    return None, None, None, None


def _orders(subject: Subject, key: str) -> list[str]:
    """The collectives of a compile, as its graphs have them, then as Inductor ordered them."""
    graphs = subject.frame("graphs").filter(pl.col("kind") == "dynamo_output")
    found = [item for text in _texts(graphs, key, "text") for item in collectives(text)]
    schedules = _texts(subject.frame("collective_schedules"), key, "schedule")
    return found + [item for schedule in schedules for item in schedule]


def _texts(frame: pl.DataFrame, key: str, column: str) -> list[str]:
    return frame.filter(pl.col("compile_key") == key)[column].drop_nulls().to_list()


def _first_line(
    before: list[str], after: list[str]
) -> tuple[str | None, str | None, str | None, int | None]:
    file, line = None, None
    pairs = zip_longest(*(lines("\n".join(texts)) for texts in (before, after)))
    for (one, place), (other, _) in ((a or (None, None), b or (None, None)) for a, b in pairs):
        file, line = place[:2] if place and place.user_line else (None, None)
        if (one is None or other is None) and (before and after):
            return one, other, file, line
        if one is not None and other is not None and NOISE.sub("", one) != NOISE.sub("", other):
            return *_around(one.strip(), other.strip()), file, line
    return None, None, None, None


def _around(one: str, other: str) -> tuple[str, str]:
    """Both from a little before the first difference."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    start = max(0, same - _AROUND)
    head = "…" if start else ""
    return head + one[start : same + 2 * _AROUND], head + other[start : same + 2 * _AROUND]
