"""A log read as a post-mortem reads it, and what of one reading is missing in another."""

from collections import Counter

from traceview.inputs import find
from traceview.parse.damage import Damage
from traceview.reading.mapping import Log, parse

#: Where a row stands in the file: lines move when others are lost.
PLACES = {"raw_line", "raw_file", "pass", "phase_id", "parent_id"}
#: Counts of the whole log.
TOTALS = {"log_records"}


def tables_of(path, data):
    """(tables, damage) of one log's bytes, recognised and read as a post-mortem does."""
    path.write_bytes(data)
    found = find([str(path)])
    tables, damage = {}, Damage()
    for entry in found.damaged:
        damage.count(entry.name, entry.kind, None, entry.what)
    for source in found.sources:
        for name, frame in parse(Log(source, "logs", damage)):
            tables[name] = frame if name not in tables else tables[name].vstack(frame)
    return tables, damage


def counts(damage):
    """{kind: (times, first line)} of all damage."""
    frame = damage.frame("logs")
    return {
        kind: (times, line)
        for kind, times, line in frame.select("kind", "times", "first_line").iter_rows()
    }


def rows(tables):
    """Every row with its table, as often as it is there, wherever in the file it stands."""
    found = Counter()
    for name, frame in tables.items():
        if name not in TOTALS:
            kept = frame.select(sorted(set(frame.columns) - PLACES))
            found.update((name, row) for row in map(repr, kept.iter_rows()))
    return found


def lost(whole, damaged):
    """Rows that are no longer there."""
    return rows(whole) - rows(damaged)


def keys(tables, missing):
    """Compile keys of missing rows."""
    found = set()
    for name, frame in tables.items():
        if name in TOTALS or "compile_key" not in frame.columns:
            continue
        kept = frame.select(sorted(set(frame.columns) - PLACES))
        for row, key in zip(kept.iter_rows(), frame["compile_key"], strict=True):
            if (name, repr(row)) in missing:
                found.add(key)
    return found
