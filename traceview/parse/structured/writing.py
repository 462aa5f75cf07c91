"""Tables of one log written straight to disk, in pieces, while it is read."""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import polars as pl

from traceview.parse.structured.reading import Batches

_BEHIND = 8  # frames


def write_tables(batches: Batches, folder: Path) -> dict[str, int]:
    """Write ``folder/TABLE.K.parquet`` of every batch; how many pieces each table has.

    Packing runs in a thread beside the reading, few frames behind it, so that memory stays bounded.
    """
    pieces: Counter[str] = Counter()
    folder.mkdir(parents=True, exist_ok=True)
    behind: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1) as writer:
        for table, frame in batches:
            path = folder / f"{table}.{pieces[table]}.parquet"
            behind.append(writer.submit(_write, frame, path))
            pieces[table] += 1
            if len(behind) > _BEHIND:
                behind.popleft().result()
        for future in behind:
            future.result()
    return dict(pieces)


def _write(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path, compression="zstd", compression_level=1, statistics=False)
