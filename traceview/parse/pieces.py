"""Tables on their way to disk: pieces that are worth a file, packed in memory first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import polars as pl

#: Rows wait until all of them take this much memory; then the largest table is a piece.
HELD_BYTES = 12 << 20


def in_pieces(batches: Iterator[tuple[str, pl.DataFrame]]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Batches of a table put together, as long as all that waits takes little memory.

    A file costs 1 ms whatever it holds.
    """
    waiting: dict[str, list[pl.DataFrame]] = {}
    held: Counter[str] = Counter()
    for name, frame in batches:
        waiting.setdefault(name, []).append(frame)
        held[name] += int(frame.estimated_size())
        while held.total() > HELD_BYTES:
            largest = max(held, key=lambda table: held[table])
            yield largest, pl.concat(waiting.pop(largest))
            del held[largest]
    for name, frames in waiting.items():
        yield name, pl.concat(frames)


def write_piece(frame: pl.DataFrame, path: Path) -> None:
    """By way of memory: for a small table, polars' own way to a file costs as much again."""
    packed = BytesIO()
    frame.write_parquet(packed, compression="zstd", compression_level=1, statistics=False)
    path.write_bytes(packed.getbuffer())
