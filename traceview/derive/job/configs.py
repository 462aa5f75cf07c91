"""Table ``job_configs``: versions and settings that are not the same on all ranks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import msgspec
import polars as pl

from traceview.derive.job.attempts import Attempt, Row, ranges, with_member
from traceview.tables import Tables

#: Name → its value as the log has it: sets repeat hundreds of values, and few differ.
Settings = dict[str, bytes]
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


def config_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """One row a value and setting, where ranks that logged the section have several."""
    mine = with_member(tables["configs"].filter(pl.col("pass") == job.name))
    for section in mine["section"].drop_nulls().unique(maintain_order=True):
        rows = mine.filter(pl.col("section") == section).drop_nulls("settings")
        texts = rows.group_by("settings", maintain_order=True).agg("member")
        sets = [(_settings(text), members) for text, members in texts.iter_rows()]
        everyone = {member for _, members in sets for member in members}
        if len(everyone) > 1:
            yield from _differing(job, section, sets, everyone)


def _differing(
    job: Attempt, section: str, sets: list[tuple[Settings, list[str]]], everyone: set[str]
) -> Iterator[Row]:
    """A rank may log several sets one after the other: all values that a name had on it count.

    Versions become known bit by bit, so there a name that is not there yet does not count.
    """
    names = {name for found, _ in sets for name in found}
    for name in sorted(name for name in names if len({found.get(name) for found, _ in sets}) > 1):
        values: dict[str, set[str | None]] = defaultdict(set)
        for found, members in sets:
            if name in found or section != "versions":
                logged = _plain(found.get(name))
                for member in members:
                    values[member].add(logged)
        groups: dict[frozenset[str | None], list[str]] = defaultdict(list)
        for member in everyone & values.keys():
            groups[frozenset(values[member])].append(member)
        # A rank that saw one value more than others only went on longer.
        if not any(one.isdisjoint(other) for one, other in combinations(groups, 2)):
            continue
        by_ranks = ((value, ranges(members), len(members)) for value, members in groups.items())
        for value, ranks, count in sorted(by_ranks, key=lambda group: (-group[2], group[1])):
            known = sorted(text for text in value if text is not None)
            yield {
                "pass": job.name,
                "section": section,
                "name": name,
                # ``false, true`` where a rank had several; None where it was never set.
                "value": ", ".join(known) or None,
                "ranks": ranks,
                "rank_count": count,
            }


def _settings(text: str) -> Settings:
    """Name → value as JSON; nothing where it is no JSON object."""
    try:
        return {name: bytes(value) for name, value in _DECODER.decode(text).items()}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:  # what only Python takes for JSON: NaN, Infinity
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {str(name): json.dumps(value).encode() for name, value in entries}


def _plain(value: bytes | None) -> str | None:
    """A value as JSON in one form, however the log wrote it."""
    try:
        return value if value is None else json.dumps(json.loads(value), sort_keys=True)
    except (ValueError, RecursionError):
        return None
