"""Table ``job_divergence``: what ranks of one program do differently.

Compared are the n-th compiles of each function: whether all ranks have them, and where all have,
their graphs, guards and orders of collectives, by digest. Of each function the first difference of
each kind is kept: what comes after it follows from it as a rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import polars as pl

from traceview.derive.job.digests import compile_digests
from traceview.derive.job.members import in_order, ranges, with_member
from traceview.derive.job.ranks import code_columns
from traceview.derive.job.spans import Attempt, Code, Row, Span
from traceview.tables import Tables

#: In this order: where collectives differ so do graphs, and with those the guards.
KINDS = ("collectives", "graph", "guards")


def divergence_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """Rows of the table, one group of ranks each; differences in the order of their functions."""
    if len(job.by_member) < 2:
        return
    digests = _digests(tables, job)
    number = 0
    for code, spans in _by_code(job).items():
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


def _by_code(job: Attempt) -> dict[Code, dict[int, list[Span]]]:
    """Code object → n → its n-th compile on every rank that has one."""
    found: dict[Code, dict[int, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for span in job.spans:
        if span.forward and span.code[1] is not None:
            found[span.code][span.index].append(span)
    return found


def _digests(tables: Tables, job: Attempt) -> Mapping[tuple[str, str], Row]:
    """(member, compile key) → digests; where only some ranks' texts are kept, of those alone."""
    known = tables["compile_digests"] if tables.has("compile_digests") else compile_digests(tables)
    mine = with_member(known.filter(pl.col("pass") == job.name))
    return {(row["member"], row["compile_key"]): row for row in mine.iter_rows(named=True)}


def _differences(
    job: Attempt, spans: Mapping[int, list[Span]], digests: Mapping[tuple[str, str], Row]
) -> Iterator[tuple[str, int, dict[str | None, list[str]]]]:
    """(kind, n, digest → ranks) of the first difference of each kind."""
    counts = dict.fromkeys(job.by_member, 0)
    for found in spans.values():
        for span in found:
            counts[span.member] += 1
    by_count: dict[str | None, list[str]] = defaultdict(list)
    for member, count in counts.items():
        by_count[str(count)].append(member)
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
