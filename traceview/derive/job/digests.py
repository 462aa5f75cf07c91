"""Table ``compile_digests``: what tells the compiles of two ranks apart.

Made of one log while its texts are at hand, since a job keeps them of a few ranks only. Left out is
what differs between ranks that do the same: device indexes, addresses, and where the source lies.
A log may come in pieces: the digests don't depend on where it is cut.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

import msgspec
import polars as pl

from traceview.tables import Tables, from_rows

#: What is looked at; the kind of graph that Dynamo hands on.
SEEN = ("graphs", "guards", "collective_schedules")
_KIND = "dynamo_output"
_COMMENT = r"(?m)^\s*# File: .*$"
#: In ASCII: other alphabets' letters and digits cost twice the time.
_DEVICE = r"(?-u:\b)(?:cuda|xpu|hpu|mps)(?::|, index=)[0-9]+|(?-u:\b)device=[0-9]+"
_ADDRESS = r"0x[0-9a-fA-F]+|(?-u:\b)[0-9]{7,}(?-u:\b)"
#: A collective in a graph, with its tensor's name, its arguments and, before it, its shape.
_COLLECTIVE = re.compile(
    r"(?m)^\s*\w+(?:: \"([^\"]*)\")? = torch\.ops\.(_?c10d_functional\.\w+)(?:\.default)?(\(.*?\))"
)
_WAITS = "wait_tensor"
_HEAD = ("pass", "rank", "compile_key", "compile_id")
_PID = r":(\d{1,18}):[^:]*:[^:]*$"


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
            texts = graphs.select(*_HEAD, said=plain(pl.col("text")))
        elif name == "guards":
            guard = pl.concat_str("kind", "guard", separator=" ", ignore_nulls=True)
            texts = frame.select(*_HEAD, said=_anywhere(guard))
        else:
            texts = frame.select(*_HEAD, said=pl.col("schedule").list.join("\n"))
        kept = texts.drop_nulls(["compile_key", "said"])
        grouped = kept.group_by(_HEAD, maintain_order=True).agg("said")
        pid = pl.col("compile_key").str.extract(_PID, 1).cast(pl.Int64, strict=False)
        for *head, said, process in grouped.with_columns(pid=pid).iter_rows():
            self._add(name, (*head, process), said)

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

    def _add(self, table: str, head: tuple[object, ...], said: list[str]) -> None:
        names = (*_HEAD, "pid")
        found = self._found.setdefault(str(head[2]), _Compile(dict(zip(names, head, strict=True))))
        if table == "guards":
            found.guards.update(map(_guard_digest, said))
        elif table == "graphs":
            found.graphs += map(_digest, said)
            found.orders += (order for graph in said for order in collectives(graph))
        else:
            found.orders += said


def compile_digests(tables: Tables) -> pl.DataFrame:
    """The same of tables that are all there."""
    digests = Digests()
    for name in SEEN:
        digests.see(name, tables[name])
    return digests.frame()


def collectives(graph: str) -> list[str]:
    """Collectives of a graph in its order: ``all_reduce(scores, 'sum', '0') f32[16, 40]``."""
    if "c10d_functional" not in graph:
        return []
    return [
        f"{name.partition('.')[2]}{arguments} {shape}".rstrip()
        for shape, name, arguments in _COLLECTIVE.findall(graph)
        if _WAITS not in name
    ]


def plain(text: pl.Expr) -> pl.Expr:
    """A graph or guard without what differs between ranks that do the same."""
    return _anywhere(text.str.replace_all(_COMMENT, ""))


def _anywhere(text: pl.Expr) -> pl.Expr:
    """The same of a text without the comments of a graph."""
    return text.str.replace_all(_DEVICE, "device").str.replace_all(_ADDRESS, "#")


def _joined(digests: list[str]) -> str | None:
    return _digest("\n".join(digests)) if digests else None


def _digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


#: Guards are short, and the same ones stand on compile after compile.
_guard_digest = lru_cache(4096)(_digest)
