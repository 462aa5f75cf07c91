"""What ranks of one program do differently, and the versions and settings that differ.

Tables ``compile_digests`` and ``job_divergence``, and ``job_configs``.

Digests are made of one log while its texts are at hand, since a job keeps them of a few ranks only.
Left out is what differs between ranks that do the same: device indexes, addresses, and where the
source lies. A log may come in pieces: the digests don't depend on where it is cut.

Compared are the n-th compiles of each function: whether all ranks have them, and where all have,
their graphs, guards and orders of collectives, by digest. Of each function the first difference of
each kind is kept: what comes after it usually follows from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations

import msgspec
import polars as pl

from traceview.derive.job.attempts import (
    Attempt,
    Code,
    Row,
    Span,
    code_columns,
    in_order,
    ranges,
    with_member,
)
from traceview.json_errors import NOT_JSON
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import COMMENT_LINES, collectives

#: What is looked at; the kind of graph that Dynamo hands on.
SEEN = ("graphs", "guards", "collective_schedules")
_KIND = "dynamo_output"
#: In ASCII: other alphabets' letters and digits cost twice the time.
_DEVICE = r"(?-u:\b)(?:cuda|xpu|hpu|mps)(?::|, index=)[0-9]+|(?-u:\b)device=[0-9]+"
_ADDRESS = r"0x[0-9a-fA-F]+|(?-u:\b)[0-9]{7,}(?-u:\b)"
#: What differs between ranks that do the same: device indexes and addresses.
NOISE = re.compile(f"{_DEVICE}|{_ADDRESS}".replace(r"(?-u:\b)", r"\b"), re.ASCII)
_HEAD = ("pass", "rank", "compile_key", "compile_id")
_PID = r":(\d{1,18}):[^:]*:[^:]*$"
#: In this order: where collectives differ so do graphs, and with those the guards.
KINDS = ("collectives", "graph", "guards")
#: Name → its value as the log has it: sets repeat hundreds of values, and few differ.
Settings = dict[str, bytes]
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Compile(msgspec.Struct):
    """Digests of one compile's graphs, in order, and guards; its collectives, in order."""

    head: dict[str, object]
    graphs: list[str] = []
    guards: set[str] = set()
    orders: list[str] = []


class Digests:
    """Takes the tables of one log, whole or in pieces, and gives one row a compile."""

    def __init__(self) -> None:
        self._found: dict[str, _Compile] = {}

    def see(self, name: str, frame: pl.DataFrame) -> None:
        """Take a piece of table ``name``; tables that say nothing here are passed over."""
        if name not in SEEN or frame.is_empty():
            return
        if name == "graphs":
            graphs = frame.filter(pl.col("kind") == _KIND)
            texts = graphs.select(*_HEAD, text=plain(pl.col("text")))
        elif name == "guards":
            guard = pl.concat_str("kind", "guard", separator=" ", ignore_nulls=True)
            texts = frame.select(*_HEAD, text=_anywhere(guard))
        else:
            texts = frame.select(*_HEAD, text=pl.col("schedule").list.join("\n"))
        kept = texts.drop_nulls(["compile_key", "text"])
        grouped = kept.group_by(_HEAD, maintain_order=True).agg("text")
        pid = pl.col("compile_key").str.extract(_PID, 1).cast(pl.Int64, strict=False)
        for *head, texts_of, process in grouped.with_columns(pid=pid).iter_rows():
            self._add(name, (*head, process), texts_of)

    def frame(self) -> pl.DataFrame:
        """The table."""
        return from_rows(
            "compile_digests",
            (
                {
                    **found.head,
                    "graph": _joined(found.graphs),
                    "guards": _joined(sorted(found.guards)),
                    "collectives": _joined(found.orders),
                }
                for found in self._found.values()
            ),
        )

    def _add(self, table: str, head: tuple[object, ...], texts: list[str]) -> None:
        names = (*_HEAD, "pid")
        found = self._found.setdefault(str(head[2]), _Compile(dict(zip(names, head, strict=True))))
        if table == "guards":
            found.guards.update(map(_guard_digest, texts))
        elif table == "graphs":
            found.graphs += map(_digest, texts)
            found.orders += (order for graph in texts for order in collectives(graph))
        else:
            found.orders += texts


def compile_digests(tables: Tables) -> pl.DataFrame:
    """The same of tables that are all there."""
    digests = Digests()
    for name in SEEN:
        digests.see(name, tables[name])
    return digests.frame()


def plain(text: pl.Expr) -> pl.Expr:
    """A graph or guard without what differs between ranks that do the same."""
    return _anywhere(text.str.replace_all(COMMENT_LINES, ""))


def _anywhere(text: pl.Expr) -> pl.Expr:
    """The same of a text without the comments of a graph."""
    return text.str.replace_all(_DEVICE, "device").str.replace_all(_ADDRESS, "#")


def _joined(digests: list[str]) -> str | None:
    return _digest("\n".join(digests)) if digests else None


def _digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


#: Guards are short, and the same ones stand on compile after compile.
_guard_digest = lru_cache(4096)(_digest)


def divergence_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """Rows of the table, one group of ranks each; differences in the order of their functions."""
    if len(job.by_member) < 2:
        return
    # Where only some ranks' texts are kept, there are digests of those alone.
    known = tables["compile_digests"] if tables.has("compile_digests") else compile_digests(tables)
    mine = with_member(known.filter(pl.col("pass") == job.name))
    digests = {(row["member"], row["compile_key"]): row for row in mine.iter_rows(named=True)}
    # Code object → n → its n-th compile on every rank that has one.
    by_code: dict[Code, dict[int, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for span in job.spans:
        if span.forward and span.code[1] is not None:
            by_code[span.code][span.index].append(span)
    number = 0
    for code, spans in by_code.items():
        for kind, index, groups in _differences(job, spans, digests):
            for digest, members in sorted(groups.items(), key=lambda item: -len(item[1])):
                first = in_order(members)[0]
                key = next(
                    (s.row["compile_key"] for s in spans.get(index, ()) if s.member == first), None
                )
                yield {
                    "pass": job.name,
                    "difference": number,
                    "kind": kind,
                    **code_columns(code),
                    "compile_index": index,
                    "ranks": ranges(members),
                    "rank_count": len(members),
                    "digest": digest,
                    "compile_key": key,
                }
            number += 1


def _differences(
    job: Attempt, spans: Mapping[int, list[Span]], digests: Mapping[tuple[str, str], Row]
) -> Iterator[tuple[str, int, dict[str | None, list[str]]]]:
    """(kind, n, digest → ranks) of the first difference of each kind."""
    counts = Counter(span.member for found in spans.values() for span in found)
    by_count: dict[str | None, list[str]] = defaultdict(list)
    for member in job.by_member:
        by_count[str(counts[member])].append(member)
    if len(by_count) > 1:
        yield "frames", 0, by_count
    seen: set[str] = set()
    for index in sorted(spans):
        for kind in KINDS:
            if seen & set(KINDS[: KINDS.index(kind) + 1]):
                continue
            groups: dict[str | None, list[str]] = defaultdict(list)
            for span in spans[index]:
                digest = digests.get(span.key, {}).get(kind)
                if digest is not None:
                    groups[digest].append(span.member)
            if len(groups) > 1:
                seen.add(kind)
                yield kind, index, groups


def config_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """One row a value and setting, where ranks that logged the section have several."""
    mine = with_member(tables["configs"].filter(pl.col("pass") == job.name))
    for section in mine["section"].drop_nulls().unique(maintain_order=True):
        rows = mine.filter(pl.col("section") == section).drop_nulls("settings")
        everyone = set(rows["member"])
        if len(everyone) < 2:
            continue
        texts = rows.group_by("settings", maintain_order=True).agg("member")
        sets = [(_settings(text), members) for text, members in texts.iter_rows()]
        # A rank may log several sets one after the other: all values that a name had on it count.
        # Versions become known bit by bit, so there a name that is not there yet does not count.
        names = {name for found, _ in sets for name in found}
        for name in sorted(
            name for name in names if len({found.get(name) for found, _ in sets}) > 1
        ):
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
    except NOT_JSON:
        pass
    try:  # what only Python takes for JSON: NaN, Infinity
        found = json.loads(text)
    except NOT_JSON:
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {str(name): json.dumps(value).encode() for name, value in entries}


def _plain(value: bytes | None) -> str | None:
    """A value as JSON in one form, however the log wrote it."""
    try:
        return value if value is None else json.dumps(json.loads(value), sort_keys=True)
    except NOT_JSON:
        return None
