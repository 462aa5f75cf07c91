"""What reading one log leaves: its tables as Parquet, and a small JSON that says what was read.

    RUN/parts/PART.json            written last, and whole: a log without one was not read
    RUN/parts/PART/NAME.K.parquet  its tables, in pieces, until the reduce moves them to tables/

``PART`` is made of where the log lies, so a second reading finds the first one's.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from pathlib import Path

import msgspec

from traceview import __version__
from traceview.inputs import Source
from traceview.json_errors import NOT_JSON
from traceview.run import write_whole
from traceview.schema import all_tables

FOLDER = "parts"


@cache
def _maker() -> str:
    """What makes a part unusable when it changes: our version, and what tables are declared."""
    declared = repr([spec.polars_schema for spec in all_tables().values()]).encode()
    return f"{__version__}-{sha1(declared, usedforsecurity=False).hexdigest()[:10]}"


class Seen(msgspec.Struct):
    """One process in a log."""

    pid: int | None = None
    rank: int | None = None
    rank_from: str | None = None
    unranked: bool = False
    host: str | None = None
    began_us: float | None = None
    ended_us: float | None = None
    records: int = 0
    world_size: int | None = None
    tables: set[str] = set()
    scripts: set[str] = set()


class Home(msgspec.Struct):
    """What the reduce decided of one process of a part: its pass and its rank.

    ``told_rank`` is the rank in the log itself. ``log`` is the part of its structured log,
    whose compiles a text log names too; ``told`` are the tables in which that log says the same.
    """

    pid: int | None
    told_rank: int | None
    pass_name: str
    rank: int | None = None
    log: str | None = None
    told: list[str] = []


class Placed(msgspec.Struct):
    """Where the part's tables are: moved to the one pass of ``moved``, else written again."""

    homes: list[Home]
    moved: str | None = None


class Part(msgspec.Struct):
    """What was read of one log; ``tables`` has the pieces of each of its tables."""

    part: str
    name: str
    url: str
    kind: str
    stamp: str | None = None
    size: int | None = None
    bytes_read: int | None = None
    rows: int = 0
    damaged: int = 0
    error: str | None = None
    folder: str = ""
    made_by: str = msgspec.field(default_factory=_maker)
    tables: dict[str, int] = {}
    processes: list[Seen] = []
    placed: Placed | None = None


def part_name(source: Source) -> str:
    """A short name that is the same whenever the same log is read.

    It begins with the log's own name, hashed: parts are read in the order of their names, which
    then does not depend on the folder that the logs lie in.
    """
    keys = (source.name, "\0".join((source.url, source.member or "")))
    return "".join(
        sha1(key.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()[:6]
        for key in keys
    )


def pieces(run: Path, part: Part, table: str) -> list[Path]:
    """The files of one table of the log."""
    count = part.tables.get(table, 0)
    if part.placed is not None and part.placed.moved is not None:
        return [placed_path(run, part, table, part.placed.moved, k) for k in range(count)]
    return [run / FOLDER / part.part / f"{table}.{k}.parquet" for k in range(count)]


def placed_path(run: Path, part: Part, table: str, pass_name: str, piece: int) -> Path:
    """Where a piece of a table lies once its pass is known."""
    folder = run / "tables" / table / f"pass={pass_name}"
    return folder / (f"{part.part}.parquet" if not piece else f"{part.part}-{piece}.parquet")


def save(run: Path, part: Part) -> None:
    """Write the part's JSON whole or not at all."""
    write_whole(run / FOLDER / f"{part.part}.json", msgspec.json.encode(part))


def load(run: Path, name: str) -> Part | None:
    """The part of that name; None if there is none, or it is damaged or of another version."""
    try:
        part = msgspec.json.decode((run / FOLDER / f"{name}.json").read_bytes(), type=Part)
    except (OSError, *NOT_JSON):
        return None
    return part if part.made_by == _maker() else None
