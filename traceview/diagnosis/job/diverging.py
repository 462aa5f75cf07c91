"""What ranks do differently, with the first line that differs between two of them."""

from __future__ import annotations

import re
from itertools import groupby, zip_longest
from operator import itemgetter

import polars as pl

from traceview.derive.job.divergence import NOISE
from traceview.diagnosis.focus import Row, code_of, cut
from traceview.diagnosis.job.model import Divergence, RankGroup
from traceview.diagnosis.job.subject import TEXT, Subject
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
_TIMES = {"0": "never", "1": "once", "2": "twice"}
#: torch's own code around what is compiled: a difference there follows from another one.
_OWN = re.compile(r"/torch/_dynamo/")

#: A line of one side, the other side's, and the user's file and line behind them.
Parting = tuple[str | None, str | None, str | None, int | None]
_NOWHERE: Parting = (None, None, None, None)


def divergences(subject: Subject) -> tuple[tuple[Divergence, ...], int]:
    """(differences, those of the slowest functions first; how many more)."""
    rows = subject.rows("job_divergence")
    order = {code: number for number, code in enumerate(map(code_of, subject.rows("job_frames")))}
    groups = [list(found) for _, found in groupby(rows, key=itemgetter("difference"))]
    groups.sort(
        key=lambda found: (
            found[0]["kind"] != "collectives",
            bool(_OWN.search(found[0]["co_filename"] or "")),
            order.get(code_of(found[0]), len(order)),
        )
    )
    told = []
    for mine in groups[:MOST]:  # a group of ranks each
        kind, name = mine[0]["kind"], names.function(mine[0]["co_name"])
        said = [
            _TIMES.get(row["digest"], f"{row['digest']} times")
            if kind == "frames"
            else f"{kind} {(row['digest'] or '')[:8]}"
            for row in mine[:MOST_GROUPS]
        ]
        ranks = tuple(
            RankGroup(subject.ranks(row["ranks"]), text)
            for row, text in zip(mine, said, strict=False)
        )
        most, least = ranks[0], ranks[-1]
        if kind == "frames":
            often = (f"{group.text} on {group.ranks.text}" for group in (most, least))
            text = f"compile counts differ: {name} {', '.join(often)}"
        else:
            nth = f"compile {mine[0]['compile_index'] + 1} of {name}"
            text = f"{nth}: {_KINDS[kind]} on {most.ranks.text} and on {least.ranks.text}"
        before, after, file, line = _parting(subject, mine)
        divergence = Divergence(
            kind=kind,
            name=name,
            file=mine[0]["co_filename"],
            line=mine[0]["co_firstlineno"],
            text=text,
            groups=ranks,
            before=cut(before, TEXT),
            after=cut(after, TEXT),
            place_file=file,
            place_line=line,
        )
        told.append(divergence)
    return tuple(told), max(0, len(groups) - MOST)


def _parting(subject: Subject, rows: list[Row]) -> Parting:
    """The first difference between the first group and the last."""
    keys = (rows[0]["compile_key"], rows[-1]["compile_key"])
    if None in keys or rows[0]["kind"] == "frames":
        return _NOWHERE

    def texts(table: str, column: str) -> list[list[str]]:
        frame = subject.frame(table)
        if table == "graphs":
            frame = frame.filter(pl.col("kind") == "dynamo_output")
        found = (frame.filter(pl.col("compile_key") == key)[column].drop_nulls() for key in keys)
        return [column.to_list() for column in found]

    if rows[0]["kind"] == "graph":
        return _first_line(*texts("graphs", "text"))
    if rows[0]["kind"] == "guards":
        guards = texts("guards", "guard")
        one, other = ({NOISE.sub("", text) for text in found} for found in guards)
        before = next((text for text in guards[0] if NOISE.sub("", text) not in other), None)
        after = next((text for text in guards[1] if NOISE.sub("", text) not in one), None)
        return before, after, None, None
    # The collectives as the graphs have them, then as Inductor ordered them.
    orders = [
        [item for text in graphs for item in collectives(text)] + [x for s in schedules for x in s]
        for graphs, schedules in zip(
            texts("graphs", "text"), texts("collective_schedules", "schedule"), strict=True
        )
    ]
    for number, (a, b) in enumerate(zip_longest(*orders), 1):
        if a != b:
            return f"collective {number}: {a}", f"collective {number}: {b}", None, None
    return _NOWHERE


def _first_line(before: list[str], after: list[str]) -> Parting:
    """The first lines of two graphs that differ, long ones from a little before the difference."""
    file, line = None, None
    pairs = zip_longest(*(lines("\n".join(texts)) for texts in (before, after)))
    for (one, place), (other, _) in ((a or (None, None), b or (None, None)) for a, b in pairs):
        file, line = place[:2] if place and place.user_line else (None, None)
        if (one is None or other is None) and (before and after):
            return one, other, file, line
        if one is not None and other is not None and NOISE.sub("", one) != NOISE.sub("", other):
            one, other = one.strip(), other.strip()
            same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            shown = slice(max(0, same - _AROUND), same + 2 * _AROUND)
            head = "…" if shown.start else ""
            return head + one[shown], head + other[shown], file, line
    return _NOWHERE
