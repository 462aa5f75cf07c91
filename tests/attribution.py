"""The check behind mutations: nothing of an undamaged record may stand where it does not belong.

A record is undamaged if its line and all lines of its payload are there, one after the other, once
and where they were. Of every such record

    identity   a row at its line has the compile id and the process that the line names
    content    the rows at its line say what they say in the clean log
    apart      rows of two compiles of the clean log never share a compile key

Which number a compile gets after a reset may change, as resets themselves may be lost or doubled.
"""

import json
import re
from collections import defaultdict

#: Of each table that has a row for a record: what of it stands in that record alone.
CONTENT = {
    "guards": ("kind", "source_name", "guard"),
    "graph_breaks": ("attempt", "gb_type", "reason"),
    "recompiles": ("order", "failed_compile_id", "guard"),
    "cache_events": ("cache", "event", "key"),
    "graphs": ("kind", "node_count", "text"),
    "symbols": ("symbol", "event"),
    "compile_phases": ("name",),
}
#: Tables with a row for what is said once, however often the log says it.
ONCE = ("fusions", "perf_hints", "warnings")
_STRUCTURED = re.compile(rb"[VIWEC]\d{4} [\d:.]{15} +(\d+) +[^\]\n]*:\d+\] ?(?=\{)")
_TEXT = re.compile(
    rb"(?P<prefix>(?:\[rank\d+\]:)?[VIWEC]\d{4} [\d:.]{15} (?P<pid>\d+) [^\]\n]*:\d+\]"
    rb"(?: \[(?P<id>!?\d[\d/_]*)\])?(?: \[__\w+\])?)"
)


def structured_records(lines):
    """{line from 0: (lines of the payload, pid, compile id, b"")} of a clean structured log."""
    found, last = {}, None
    for number, line in enumerate(lines):
        head = _STRUCTURED.match(line)
        if head:
            last, found[number] = number, [0, int(head[1]), _identity(line[head.end() :]), b""]
        elif last is not None:
            found[last][0] += 1
    return found


def text_records(lines):
    """The same of a text log: a message is the lines with one prefix, the last value, in a row."""
    found, last, prefix = {}, None, None
    for number, line in enumerate(lines):
        head = _TEXT.match(line)
        if head is None:
            prefix = None
        elif head["prefix"] == prefix:
            found[last][0] += 1
        else:
            last, prefix = number, head["prefix"]
            compile_id = head["id"] and head["id"].decode().partition("_")[0]
            found[number] = [0, int(head["pid"]), compile_id, prefix]
    return found


def _identity(envelope):
    context = json.loads(envelope)
    frame, number = context.get("frame_id"), context.get("frame_compile_id")
    if frame is not None and number is None:
        return None
    autograd = context.get("compiled_autograd_id")
    parts = [] if autograd is None else [f"!{autograd}"]
    parts += [] if frame is None else [f"{frame}/{number}"]
    return "/".join(parts) or None


def undamaged(records, lines):
    """{line number in the damaged log, from 0: that in the clean one} of undamaged records."""
    origins = [None if line.moved else line.origin for line in lines]
    times = defaultdict(int)
    for origin in origins:
        times[origin] += 1
    found = {}
    for at, origin in enumerate(origins):
        if origin in records:
            wanted = list(range(origin, origin + records[origin][0] + 1))
            alone = all(times[number] == 1 for number in wanted)
            end = at + len(wanted)
            if alone and origins[at:end] == wanted and not _goes_on(lines[end:], records[origin]):
                found[at] = origin
    return found


def _goes_on(after, record):
    """Whether a damaged line is taken for one more of the message: it has its prefix."""
    prefix = record[3]
    return bool(prefix and after and after[0].origin is None and after[0].data.startswith(prefix))


def misplaced(records, clean, damaged, lines):
    """What is wrong with the tables ``damaged``, read of ``lines``; [] if nothing is."""
    same = undamaged(records, lines)
    inside = {
        at + more: (at, origin)
        for at, origin in same.items()
        for more in range(records[origin][0] + 1)
    }
    return [
        *_identities(records, damaged, inside),
        *_contents(clean, damaged, inside),
        *_mixed(clean, damaged, inside),
    ]


def _identities(records, tables, inside):
    for name in {*CONTENT, *ONCE} & tables.keys():
        for row in tables[name].iter_rows(named=True):
            place = inside.get(row["raw_line"] - 1)
            if place is None:
                continue
            _, pid, compile_id, _ = records[place[1]]
            if (row["compile_id"] or "").partition("_")[0] != (compile_id or ""):
                yield f"{name}, line {row['raw_line']}: {row['compile_id']}, not {compile_id}"
            if row.get("pid") not in (None, pid):
                yield f"{name}, line {row['raw_line']}: process {row['pid']}, not {pid}"


def _by_line(tables, name):
    """{line from 0: what its rows say, in order}."""
    frame = tables.get(name)
    found = defaultdict(list)
    if frame is not None:
        columns = [column for column in CONTENT[name] if column in frame.columns]
        for line, *said in frame.select("raw_line", *columns).iter_rows():
            found[line - 1].append(tuple(said))
    return found


def _contents(clean, damaged, inside):
    for name in CONTENT:
        before, after = _by_line(clean, name), _by_line(damaged, name)
        for at, (start, origin) in inside.items():
            told, tells = before[origin + at - start], after[at]
            if len(told) != len(tells) or not all(map(_agree, told, tells)):
                yield f"{name}, line {at + 1} (clean {origin + at - start + 1}): {told} → {tells}"


def _agree(told, tells):
    """A text that two records share is kept with the first of them: None on the other."""
    return all(a == b or a is None or b is None for a, b in zip(told, tells, strict=True))


def _mixed(clean, damaged, inside):
    key_at = {}
    for name in CONTENT.keys() & clean.keys():
        frame = clean[name].filter(clean[name]["compile_key"].is_not_null())
        key_at.update(((name, line - 1), key) for line, key in _keys(frame))
    owners = defaultdict(set)
    for name in CONTENT.keys() & damaged.keys():
        for line, key in _keys(damaged[name]):
            place = inside.get(line - 1)
            if place is not None and key is not None:
                start, origin = place
                owners[key].add(key_at.get((name, origin + line - 1 - start)))
    for key, clean_keys in owners.items():
        if len(clean_keys - {None}) > 1:
            yield f"{key} holds records of {sorted(clean_keys - {None})}"


def _keys(frame):
    return frame.select("raw_line", "compile_key").iter_rows()
